import type { CliTable } from '../../sdk/cli-table.js'
import type { ShieldCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<ShieldCalls> = {
  bare: 'get',
  verbs: {
    get: {
      call: 'GET /shield',
      columns: {
        on: 'policy.enabled',
        'providers are': 'policy.defaultTrust',
        'when it fails': 'policy.onFailure',
        countries: 'policy.countries',
        languages: 'policy.languages',
        lists: { field: 'policy.lists.label', none: 'none' },
        patterns: { field: 'policy.patterns.label', none: 'none' },
        revision: 'revision',
      },
      lists: {
        providers: { rows: 'providers', columns: { provider: 'id', trust: 'trust', why: 'why', masked: 'covered' } },
      },
    },
    set: { call: 'POST /shield', args: [], done: 'replaced the policy', examples: ['policy=@policy.json'] },
    preview: {
      call: 'POST /shield/preview',
      args: ['text'],
      columns: { leaves: 'masked', 'the provider is': 'trust', blocked: 'blocked' },
      lists: {
        found: { rows: 'findings', columns: { kind: 'kind', by: 'detector', becomes: 'token', how: 'action' } },
      },
      examples: ['"Write to jane@example.net"'],
    },
    stats: {
      call: 'GET /shield/stats',
      args: [],
      columns: {
        requests: 'requests.total',
        shielded: 'requests.shielded',
        trusted: 'requests.trusted',
        blocked: 'requests.blocked',
        restored: 'restored',
        'not restored': 'unrestored',
      },
      lists: {
        masked: { rows: 'masked', columns: { kind: 'kind', by: 'detector', times: 'count', different: 'distinct' } },
      },
    },
    tokens: {
      call: 'GET /shield/conversations/{id}',
      args: ['id'],
      rows: 'tokens',
      columns: {
        token: 'token',
        kind: 'kind',
        like: 'hint',
        uses: 'uses',
        restored: 'restored',
        'first seen': 'firstSeen',
      },
      none: 'nothing was masked in this conversation',
    },
    forget: { call: 'DELETE /shield/conversations/{id}', done: 'destroyed {forgotten} tokens of {id}' },
    restore: {
      call: 'POST /shield/restore',
      args: ['conversationId', 'text'],
      done: '{text}',
      columns: { unknown: 'unknown' },
    },
    replay: {
      call: 'POST /shield/replay',
      args: [],
      columns: {
        conversations: 'conversations',
        requests: 'requests',
        refused: { field: 'refused.length', none: '0' },
      },
      lists: {
        detectors: {
          rows: 'detectors',
          columns: { detector: 'detector', masked: 'masked', more: 'added', fewer: 'dropped', blocked: 'blocked' },
        },
      },
    },
  },
}
