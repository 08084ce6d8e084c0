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
  hidden: ['GET /drafts', 'POST /drafts', 'DELETE /drafts/{id}'],
  verbs: {
    list: {
      call: 'GET /approvals',
      args: [],
      rows: 'approvals',
      blocks: true,
      columns: {
        id: 'id',
        state: { field: 'status', words: STATES },
        what: ['action.summary', 'post.title', 'post.platform'],
        action: 'action.key',
        arguments: 'action.args',
        to: 'post.target',
        content: 'post.content',
        files: 'post.media',
        why: 'why',
        persona: 'actsAs',
        'asked by': 'proposedBy',
        asked: 'createdAt',
        'goes out': ['sendAt', 'scheduledAt'],
        problem: 'problem',
        'who may say yes': { field: 'ownerOnly', words: { true: 'the owner only', false: '' } },
        'went wrong': 'attempts.error',
        answer: 'result',
        address: 'url',
        'say yes': {
          field: 'status',
          words: {
            proposed: '{sandbox} approvals approve {id} {digest}',
            failed: '{sandbox} approvals approve {id} {digest}',
            approved: '',
            sending: '',
            done: '',
            declined: '',
          },
        },
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
  failures: {
    'POST /approvals/{id}/approve': { field: 'status', is: ['failed'], text: '{problem} {attempts.error}' },
  },
}
