import type { CliTable } from '../../sdk/cli-table.js'
import type { SkillsCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<SkillsCalls> = {
  bare: 'list',
  verbs: {
    list: {
      call: 'GET /skills',
      rows: '',
      columns: { skill: 'id', from: 'origin', on: 'enabled', 'when it is used': { field: 'description', most: 200 } },
      none: 'no skills',
    },
    read: {
      call: 'GET /skills/read',
      args: ['id'],
      columns: { name: 'name', 'when it is used': 'description', files: 'files', text: 'body' },
    },
    save: {
      call: 'POST /skills',
      args: ['name', 'description'],
      done: 'saved the skill {name}',
      examples: ['release "Use it to make a release." body=@SKILL.md'],
    },
    remove: { call: 'POST /skills/remove', args: ['name'], done: 'removed the skill {name}' },
    'set-enabled': {
      call: 'POST /skills/enabled',
      args: ['id', 'enabled'],
      done: 'switched {enabled?on:off} {id}',
      examples: ['release off'],
    },
    import: {
      call: 'POST /skills/import',
      args: [],
      columns: { imported: { field: 'imported.name', none: 'none' }, skipped: 'skipped.name' },
      examples: ['from:=\'{"kind":"folder","path":"skills"}\''],
    },
  },
}
