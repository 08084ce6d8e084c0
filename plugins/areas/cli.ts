import type { CliTable } from '../../sdk/cli-table.js'
import type { Areas } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<Areas> = {
  bare: 'list',
  verbs: {
    list: {
      call: 'GET /areas',
      rows: 'areas',
      columns: {
        area: 'id',
        label: 'label',
        access: 'access',
        holders: { field: 'holders.length', none: 'nobody' },
        folders: 'folders',
      },
      none: 'no areas: everybody with a role reaches the whole workspace',
    },
    get: {
      call: 'GET /areas/{id}',
      columns: {
        label: 'label',
        note: 'note',
        access: 'access',
        holders: { field: 'holders.email', none: 'nobody' },
        repositories: 'repos.repo',
        conversations: 'conversations',
        changed: 'updatedAt',
        by: 'updatedBy',
      },
      lists: { folders: { rows: 'folders', columns: { folder: 'path', 'is there': 'exists', files: 'files' } } },
    },
    reach: {
      call: 'GET /areas/reach',
      args: ['path'],
      rows: 'people',
      columns: { who: 'email', role: 'role', access: 'access', through: 'via' },
      none: 'nobody reaches it',
      examples: ['docs'],
    },
    write: {
      call: 'POST /areas',
      args: ['id', 'label'],
      done: '{created?created:changed} {id}: {area.folders}',
      examples: ['docs Documents --folders docs --folders pages'],
    },
    holders: {
      call: 'POST /areas/{id}/holders',
      args: ['id'],
      rows: 'holders',
      columns: { who: 'email', role: 'role' },
      none: 'nobody holds it',
      examples: ['docs --add ben@example.org'],
    },
    delete: { call: 'DELETE /areas/{id}', done: 'removed the area {id}; its files stay' },
  },
}
