import type { Examples } from '../../sdk/contract.js'
import type { EndpointCalls, EndpointRow, ModelRow } from './contract.js'

const MODEL: ModelRow = { id: 'qwen3:8b', label: 'qwen3:8b', efforts: [], badges: ['reasoning'], contextWindow: 40960 }
const DESK: EndpointRow = {
  id: 'desk',
  provider: 'endpoint/desk',
  kind: 'server',
  label: 'Under the desk',
  protocol: 'ollama',
  baseUrl: 'http://192.168.1.20:11434',
  hasKey: false,
  headerNames: [],
  status: 'ready',
  models: 1,
  default: 'qwen3:8b',
  checkedAt: 1795384994499,
}

const PREFETCH = { model: 'small', state: 'downloading', receivedBytes: 209715200, totalBytes: 491520000 } as const

/** One use of each call. */
export const examples = (): Examples<EndpointCalls> => ({
  'GET /endpoints': { output: { endpoints: [DESK] } },
  'POST /endpoints': {
    input: {
      id: 'desk',
      label: 'Under the desk',
      kind: 'server',
      protocol: 'ollama',
      baseUrl: 'http://192.168.1.20:11434',
    },
    output: DESK,
  },
  'DELETE /endpoints/{id}': { input: { id: 'desk' }, output: { ok: true } },
  'POST /endpoints/{id}/test': {
    input: { id: 'desk' },
    output: {
      ok: true,
      latencyMs: 412,
      models: 1,
      model: 'qwen3:8b',
      chat: 'ok',
      streaming: true,
      tools: 'ok',
    },
  },
  'GET /endpoints/{id}/models': { input: { id: 'desk' }, output: { models: [MODEL], default: 'qwen3:8b' } },
  'GET /endpoints/local-model/fit': {
    output: {
      memoryBytes: 17179869184,
      memoryCapped: false,
      gpu: 'absent',
      gpuMemoryBytes: 0,
      gpuFreeBytes: 0,
      budgetBytes: 14602888806,
      fullSpeedBytes: 14602888806,
      fullSpeedDevice: 'host',
      serverReady: true,
      options: [
        {
          model: 'small',
          label: 'Small 0.5B (Apache 2.0)',
          tier: 'instant',
          weightsBytes: 491520000,
          held: false,
          windows: [{ tokens: 4096, totalBytes: 1121600000, fits: true, fullSpeed: true }],
        },
      ],
      instant: { model: 'small', context: 4096 },
      best: { model: 'small', context: 4096 },
      prefetch: PREFETCH,
    },
  },
  'POST /endpoints/local-model/prefetch': { input: { action: 'start' }, output: PREFETCH },
  'GET /endpoints/trial/status': {
    output: {
      available: true,
      allowance: 100,
      used: 12,
      remaining: 88,
      health: 'healthy',
      resetsAt: '2026-11-24T00:00:00.000Z',
    },
  },
})
