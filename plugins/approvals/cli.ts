import type { CliTable } from '../../sdk/cli-table.js'
import type { ApprovalsCalls } from './contract.js'

const STATES = {
  proposed: 'waits for you',
  approved: 'approved, not sent yet',
  sending: 'is being sent',
  done: 'sent',
  failed: 'failed',
  declined: 'declined',
}

/** The verbs of the group. */
export const cli: CliTable<ApprovalsCalls> = {
  bare: 'list',
  verbs: {
    list: {
      call: 'GET /approvals',
      args: [],
      rows: 'approvals',
      columns: {
        id: 'id',
        state: { field: 'status', words: STATES },
        what: { field: ['action.summary', 'post.title', 'kind'], most: 50 },
        to: { field: ['post.target', 'action.key', 'post.platform'], most: 200 },
        'asked by': 'proposedBy',
        asked: 'createdAt',
        digest: { field: 'digest', most: 64 },
        // A yes is for all of it, so all of it is shown.
        sends: { field: ['post.content', 'action.args'], most: 64_000 },
      },
      none: 'no approvals: nothing waits for a yes',
      examples: ['--status proposed'],
    },
    propose: {
      call: 'POST /approvals',
      args: ['kind'],
      done: 'proposed {id}: {sandbox} approvals list shows it',
      examples: ['post post:=\'{"platform":"webhook","target":"https://hooks.example.org/x","content":"Hello."}\''],
    },
    approve: {
      call: 'POST /approvals/{id}/approve',
      args: ['id', 'digest'],
      flags: { scheduledAt: { name: 'at', help: 'not before this time' }, now: { help: 'without the wait of 60 s' } },
      done: 'approved {id}',
      columns: { 'goes out': 'sendAt', problem: 'problem' },
    },
    recall: { call: 'POST /approvals/{id}/recall', done: 'took the yes for {id} back: it waits again' },
    decline: {
      call: 'POST /approvals/{id}/decline',
      done: 'declined {id}',
      examples: ['a-1 --reason "not before Monday"'],
    },
    remove: { call: 'DELETE /approvals/{id}', done: 'removed {id}', examples: ['a-1'] },
  },
}
