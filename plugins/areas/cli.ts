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
        id: 'id',
        access: 'access',
        folders: 'folders',
        people: { field: 'holders.email', empty: 'nobody' },
        label: 'label',
      },
      below: [
        { rows: 'areas.problems', text: '{folder} of {of.id} grants nothing: {problem}' },
        { rows: 'folders', if: 'of.limited', text: 'you reach {path} ({access})' },
      ],
      none:
        '{limited?you hold no area, so you reach nothing:no areas: all members reach the whole workspace; '
        + '{sandbox} areas write ID FOLDER makes one}',
    },
    get: {
      call: 'GET /areas/{id}',
      columns: {
        id: 'id',
        label: 'label',
        note: 'note',
        access: { field: 'access', words: { work: 'for work', read: 'for reading' } },
        'held by': { field: 'holders.email', empty: 'nobody' },
        conversations: 'conversations',
        changed: 'updatedAt',
        by: 'updatedBy',
      },
      lists: {
        folders: {
          rows: 'folders',
          columns: {
            folder: 'path',
            holds: { field: 'exists', words: { true: '{files#file}', false: 'is gone: it grants nothing' } },
          },
        },
        repositories: {
          rows: 'repos',
          columns: {
            repository: 'repo',
            covered: { field: 'covered', words: { all: 'the whole of it', part: 'some files of it' } },
          },
        },
      },
    },
    reach: {
      call: 'GET /areas/reach',
      args: ['path'],
      lists: {
        people: {
          rows: 'people',
          columns: {
            person: 'email',
            role: 'role',
            access: 'access',
            through: {
              field: 'access',
              words: { none: '', work: '{via}{via?:the whole workspace}', read: '{via}{via?:the whole workspace}' },
            },
          },
        },
        folders: {
          rows: 'folders',
          columns: { folder: 'path', access: 'access', through: { field: 'via', empty: 'the whole workspace' } },
        },
      },
      examples: ['docs', '--email ben@example.org'],
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
