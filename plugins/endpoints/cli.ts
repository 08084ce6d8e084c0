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
        name: 'id',
        status: {
          field: 'status',
          words: {
            downloading:
              'downloading{local.totalBytes? :}{local.receivedBytes}{local.totalBytes? of :}{local.totalBytes}',
          },
        },
        models: 'models',
        protocol: 'protocol',
        address: { field: ['baseUrl', 'local', 'label'], text: { local: 'this machine' } },
        default: 'default',
        checked: 'checkedAt',
      },
      below: [{ rows: 'endpoints', if: 'detail', text: '{id}: {detail}' }],
      none: 'no model servers; next: {sandbox} model add NAME --protocol openai|anthropic|ollama --url URL',
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
      rows: 'options',
      columns: {
        model: 'model',
        weights: 'weightsBytes',
        here: 'held',
        'largest window': {
          field: 'windows',
          last: 'fits',
          text: { windows: '{tokens}{fullSpeed?: (slow)}' },
          none: 'too large',
        },
        name: 'label',
      },
      above: [{ rows: '', text: 'a model may take {budgetBytes}, and {fullSpeedBytes} at full speed' }],
      more: {
        memory: 'memoryBytes',
        'graphics card': 'gpu',
        'llama-server': {
          field: 'serverReady',
          words: { true: 'installed', false: 'not installed, or does not start; it runs models' },
        },
        best: 'best.model',
      },
      none: 'no models are offered: the deployment lists them in the file of models.local',
    },
    'local-model-prefetch': {
      call: 'POST /endpoints/local-model/prefetch',
      args: ['action'],
      columns: { model: 'model', state: 'state', fetched: 'receivedBytes', of: 'totalBytes' },
      examples: ['start'],
    },
  },
  failures: {
    'POST /endpoints': { field: 'status', is: ['error', 'refused', 'unavailable', 'unreachable'] },
    'POST /endpoints/local-model/prefetch': { field: 'state', is: ['failed'] },
  },
}
