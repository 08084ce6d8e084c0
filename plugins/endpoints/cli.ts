import type { CliTable } from '../../sdk/cli-table.js'
import type { EndpointCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<EndpointCalls> = {
  bare: 'list',
  verbs: {
    list: {
      call: 'GET /endpoints',
      rows: 'endpoints',
      columns: {
        id: 'id',
        label: 'label',
        kind: 'kind',
        status: 'status',
        models: 'models',
        default: 'default',
        checked: 'checkedAt',
      },
      none: 'no model servers; {sandbox} model add ID adds one',
    },
    models: {
      call: 'GET /endpoints/{id}/models',
      rows: 'models',
      columns: { model: 'id', label: 'label', window: 'contextWindow', can: 'badges' },
      none: 'it serves no models',
    },
    save: {
      call: 'POST /endpoints',
      args: ['id', 'kind'],
      done: 'saved {id}: {status}',
      examples: ['desk server --protocol ollama --base-url http://192.168.1.20:11434'],
    },
    test: {
      call: 'POST /endpoints/{id}/test',
      done: '{ok?works:does not work}',
      columns: {
        model: 'model',
        answered: 'latencyMs',
        models: 'models',
        chat: 'chat',
        tools: 'tools',
        streams: 'streaming',
        why: 'detail',
      },
    },
    remove: { call: 'DELETE /endpoints/{id}', done: 'removed {id}' },
    trial: {
      call: 'GET /endpoints/trial/status',
      columns: { available: 'available', left: 'remaining', of: 'allowance', state: 'health', 'renews at': 'resetsAt' },
    },
    'local-model-fit': {
      call: 'GET /endpoints/local-model/fit',
      columns: {
        memory: 'memoryBytes',
        'room for a model': 'budgetBytes',
        'graphics card': 'gpu',
        'server program': { field: 'serverReady', words: { true: 'installed', false: 'missing' } },
        best: 'best.model',
      },
      lists: {
        models: {
          rows: 'options',
          columns: { model: 'model', label: 'label', tier: 'tier', weights: 'weightsBytes', 'is here': 'held' },
        },
      },
    },
    'local-model-prefetch': {
      call: 'POST /endpoints/local-model/prefetch',
      args: ['action'],
      columns: { model: 'model', state: 'state', fetched: 'receivedBytes', of: 'totalBytes' },
      examples: ['start'],
    },
  },
}
