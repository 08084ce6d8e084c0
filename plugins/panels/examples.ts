import type { Examples } from '../../sdk/contract.js'
import type { Panel, PanelsCalls } from './contract.js'

const SESSION = 'panel-clients--shop'
const PREVIEW = 'http://preview-clients--shop-k3x7qpl2m5ndvw4a.localhost:8788'
const PANEL: Panel = {
  ...{ repo: 'clients/shop', hasPanel: true, running: true, healthy: true },
  ...{ port: 41_873, previewUrl: PREVIEW, session: SESSION, startedAt: 1_760_000_000_000 },
  servers: [{ url: 'http://localhost:41873', session: SESSION }],
  role: 'app',
  ...{ deployConfig: true, desiredState: false, directoryUi: false, monorepo: false },
  ...{ vitest: true, userStories: false, docs: true },
}

/** One use of each call. */
export const examples = (): Examples<PanelsCalls> => ({
  'GET /panels': { output: { panels: [PANEL] } },
  'GET /panels/{repo}': { input: { repo: 'clients/shop', wait: 'healthy' }, output: PANEL },
  'POST /panels/{repo}/start': {
    input: { repo: 'clients/shop' },
    output: { ok: true, session: SESSION, port: 41_873, previewUrl: PREVIEW },
  },
  'POST /panels/{repo}/stop': { input: { repo: 'clients/shop' }, output: { ok: true } },
})
