import type { CliTable } from '../../sdk/cli-table.js'
import type { SecretsCalls } from './contract.js'

/** The verbs of the group; `set` and `import` beside them ask for values, which are no arguments. */
export const cli: CliTable<SecretsCalls> = {
  bare: 'inventory',
  verbs: {
    inventory: {
      call: 'GET /secrets/inventory',
      rows: 'entries',
      columns: {
        name: 'key',
        kind: 'kind',
        status: 'status',
        used: { field: 'lastUse.at', none: 'never' },
        'kept in': 'storedAt',
      },
      none: 'no secrets; {sandbox} secret set NAME stores one',
    },
    list: {
      call: 'GET /secrets',
      rows: 'keys',
      columns: { name: '' },
      none: 'no secrets; {sandbox} secret set NAME stores one',
    },
    remove: {
      call: 'DELETE /secrets/{key}',
      done: '{removed?removed:no secret is named} {key}',
      examples: ['API_TOKEN'],
    },
    generate: {
      call: 'POST /secrets/generate',
      args: ['key'],
      done: 'made a value for {key}: use it as {{secret:{key}}}',
      columns: { 'public key': 'publicKey' },
      examples: ['SESSION_KEY'],
    },
    'set-store': {
      call: 'POST /secrets/store',
      args: ['kind'],
      done: 'secrets are kept in {kind}',
      examples: ['vault --unlock file'],
    },
    set: {
      call: 'POST /secrets',
      args: ['key'],
      done: 'stored {key}: use it as {{secret:{key}}}',
      examples: ['API_TOKEN value=@token.txt'],
    },
    import: {
      call: 'POST /secrets/import',
      args: ['path'],
      columns: { stored: 'added', replaced: 'replaced', skipped: 'skipped.key' },
      examples: ['.env --replace'],
    },
    reveal: { call: 'POST /secrets/reveal', args: ['key'], done: '{value}', examples: ['API_TOKEN'] },
    store: {
      call: 'GET /secrets/store',
      columns: {
        'kept in': {
          field: 'kind',
          none: 'nowhere yet',
          words: { vault: 'an encrypted vault', dotenv: 'a .env file' },
        },
        'unlocked by': { field: 'unlock', words: { file: 'a key of this machine' } },
        state: { field: 'locked', words: { true: 'locked', false: 'open' } },
        values: 'keys',
      },
      lists: {
        'places to keep them (set-store)': {
          rows: 'choices',
          columns: {
            kind: 'kind',
            unlock: 'unlock',
            available: 'available',
            why: 'reason',
          },
        },
      },
    },
    uses: {
      call: 'GET /secrets/uses',
      rows: 'uses',
      columns: { used: 'at', name: 'name', by: 'by', for: 'lane', what: 'detail' },
      none: 'no value was used yet',
    },
    ci: {
      call: 'POST /secrets/ci',
      args: [],
      rows: 'results',
      columns: { repository: 'repo', name: 'key', state: 'status', detail: 'detail' },
      none: 'nothing to write',
      examples: ['--targets services/api --keys API_TOKEN'],
    },
  },
  failures: {
    'POST /secrets/ci': { field: 'results.status', is: ['failed'] },
  },
}
