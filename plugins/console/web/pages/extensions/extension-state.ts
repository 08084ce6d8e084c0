import type { ExtensionRecord } from '../../../../extensions/contract.js'
import type { ToneWord } from '../../ui/page.js'

const BACKEND: { readonly [state: string]: ToneWord } = {
  running: ['good', 'Runs'],
  starting: ['busy', 'Starts'],
  error: ['bad', 'Failed'],
  absent: ['warn', 'Its backend is missing'],
  incompatible: ['warn', 'For another host'],
  stopped: ['', 'Stopped'],
}

/** How an extension stands, in one word or two. */
export const extensionState = ({ enabled, backend, advisory, health }: ExtensionRecord): ToneWord => {
  if (advisory) return ['bad', 'Warned of']
  if (!enabled) return ['', 'Off']
  if (health?.state === 'unhealthy') return ['bad', 'Unhealthy']
  return backend ? (BACKEND[backend.state] ?? ['', backend.state]) : ['good', 'On']
}
