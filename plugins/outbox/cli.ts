import type { CliTable } from '../../sdk/cli-table.js'
import type { OutboxCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<OutboxCalls> = {
  bare: 'list',
  hidden: ['GET /p/{slot}/{path}'],
  verbs: {
    list: {
      call: 'GET /public',
      args: [],
      rows: 'files',
      columns: {
        path: 'path',
        size: { field: 'size', as: 'size' },
        published: 'publishedAt',
        by: 'publishedBy',
        opened: 'opened',
        address: { field: 'url', most: 200 },
      },
      none: 'nothing is published',
    },
    publish: {
      call: 'POST /public/publish',
      args: ['path', 'as'],
      flags: {
        expiresAt: { name: 'expires', help: 'until when, such as 7d' },
        expect: { help: 'publish only the files that check showed' },
      },
      done: 'published {path}: {url}',
      columns: {
        files: 'files',
        size: 'bytes',
        'left out': 'blocked.path',
        copy: { field: 'path', text: { path: 'public/{path} in the workspace, which git may list as untracked' } },
      },
      examples: ['docs/report report'],
    },
    check: {
      call: 'POST /public/publish',
      args: ['path', 'as'],
      fill: () => ({ mode: 'check' }),
      done: 'would publish {path}; nothing is published yet',
      columns: {
        files: 'files',
        size: 'bytes',
        'left out': 'blocked.path',
        'for --expect': { field: 'digest', most: 64 },
      },
    },
    unpublish: { call: 'POST /public/unpublish', args: ['path'], done: 'withdrew {path}' },
    rotate: { call: 'POST /public/rotate', done: 'the outbox has a new address; the old ones answer nothing: {url}' },
  },
}
