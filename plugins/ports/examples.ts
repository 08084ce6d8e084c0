import type { Examples } from '../../sdk/contract.js'
import type { PortEntry, PortsCalls } from './contract.js'

const URL = 'http://port-k3x7qpl2m5ndvw4a.localhost:8788'

const VITE: PortEntry = {
  port: 5173,
  host: '127.0.0.1',
  forwardable: true,
  kind: 'workspace',
  title: 'Vite dev server',
  purpose: 'Runs in web, started in the terminal web-1.',
  origin: 'terminal',
  pid: 4711,
  command: 'node node_modules/.bin/vite',
  cwd: 'web',
  session: 'web-1',
  forwarded: true,
  previewUrl: URL,
}

/** One use of each call. */
export const examples = (): Examples<PortsCalls> => ({
  'GET /ports': { output: { ports: [VITE] } },
  'POST /ports/forward': { input: { port: 5173 }, output: { previewUrl: URL } },
  'POST /ports/unforward': { input: { port: 5173 }, output: { ok: true } },
})
