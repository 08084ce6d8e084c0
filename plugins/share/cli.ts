import type { CliColumns, CliTable } from '../../sdk/cli-table.js'
import type { ShareCalls } from './contract.js'

const SHARED: CliColumns = {
  address: 'url',
  title: 'title',
  messages: 'messages',
  size: 'sizeBytes',
  'masked values': 'redactions.length',
  until: 'expiresAt',
}

/** The verbs of the group. */
export const cli: CliTable<ShareCalls> = {
  bare: 'list',
  hidden: ['GET /s/{id}/{path}'],
  verbs: {
    list: {
      call: 'GET /share',
      args: [],
      rows: 'shares',
      columns: {
        id: { field: 'id', most: 100 },
        conversation: 'conversationId',
        shared: 'sharedAt',
        until: 'expiresAt',
        opened: 'opened',
        address: { field: 'url', most: 200 },
      },
      none: 'nothing is shared',
    },
    create: {
      call: 'POST /share',
      args: ['conversationId', 'title'],
      flags: {
        expiresAt: { name: 'expires', help: 'until when, such as 7d' },
        expect: { help: 'share only the page that preview with this title showed' },
      },
      fill: () => ({ detail: 'messages' }),
      done: 'shared {conversationId}: {url}',
      columns: SHARED,
      examples: ['c-1 "A parser for dates" --expires 7d'],
    },
    preview: {
      call: 'POST /share/preview',
      args: ['conversationId', 'detail'],
      fill: () => ({ detail: 'messages' }),
      columns: {
        title: 'title',
        messages: 'messages',
        pictures: 'pictures.length',
        'masked values': 'redactions.count',
        'left out': 'dropped.length',
        'cut short': 'truncated',
        'for --expect': { field: 'digest', most: 64 },
      },
    },
    update: {
      call: 'POST /share/update',
      args: ['id'],
      flags: { expiresAt: { name: 'expires', help: 'until when, such as 7d' } },
      done: 'took the snapshot of {id} again',
      columns: SHARED,
    },
    remove: { call: 'POST /share/remove', args: ['id'], done: '{removed?took down:nothing is shared as} {id}' },
  },
}
