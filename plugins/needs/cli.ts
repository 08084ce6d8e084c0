import type { CliTable } from '../../sdk/cli-table.js'
import type { NeedsCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<NeedsCalls> = {
  bare: 'list',
  verbs: {
    list: {
      call: 'GET /needs',
      args: [],
      rows: 'needs',
      columns: {
        id: 'id',
        state: { field: 'status', words: { open: 'waits for you', given: 'given', declined: 'declined' } },
        kind: 'kind',
        conversation: 'conversationId',
        raised: 'raisedAt',
        what: { field: 'title', most: 50 },
      },
      none: 'no needs: no agent waits for anything',
      examples: ['--status open'],
    },
    get: {
      call: 'GET /needs/{id}',
      columns: {
        what: 'title',
        why: 'why',
        state: { field: 'status', words: { open: 'waits for you' } },
        kind: 'kind',
        conversation: 'conversationId',
        raised: 'raisedAt',
        by: 'raisedBy',
        answered: 'settledAt',
        'answered by': 'settledBy',
        note: 'note',
      },
      lists: {
        fields: { rows: 'fields', columns: { key: 'key', label: 'label', type: 'type', required: 'required' } },
      },
    },
    give: {
      call: 'POST /needs/{id}/give',
      args: ['id'],
      done: 'gave what {id} asks for',
      columns: {
        title: 'need.title',
        state: 'need.status',
        'goes on in': 'need.conversationId',
        'answered by': 'need.settledBy',
      },
      examples: ['n-1 answers:=\'{"answer":"eu-west-1"}\''],
    },
    decline: {
      call: 'POST /needs/{id}/decline',
      args: ['id'],
      done: 'declined {id}',
      columns: {
        title: 'need.title',
        state: 'need.status',
        'goes on in': 'need.conversationId',
        'answered by': 'need.settledBy',
      },
      examples: ['n-1 --reason "nobody decided that yet"'],
    },
    raise: {
      call: 'POST /needs',
      args: ['conversationId', 'title'],
      done: 'raised {id} for {conversationId}',
      examples: ['c-1 "Which region?" --kind information --why "the script asks for one"'],
    },
  },
}
