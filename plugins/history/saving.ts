import type { Host } from '../../sdk/index.js'
import type { SavedPoints } from './saved-points.js'
import type { Restoring } from './restoring.js'
import { ignored } from '../../sdk/index.js'

const INTERVAL_MS = 60_000
/** A pass that took a second makes the next one wait for 20: at most 5 % of one core. */
const SHARE = 20
const PRUNE_EVERY = 60

/** Saves a point after each turn in the shared tree, and every 60 s while something changes. */
export const keepSaving = (host: Host, saved: SavedPoints, restoring: Restoring): void => {
  let passes = 0
  const pass = async (): Promise<number> => {
    const begun = performance.now()
    if (!restoring.running) await saved.save({ trigger: 'interval' })
    passes += 1
    if (passes % PRUNE_EVERY === 0) await saved.prune()
    return performance.now() - begun
  }
  const later = (ms: number): void => {
    const timer = setTimeout(() => {
      pass()
        .catch(error => {
          if (!host.signal.aborted) host.log.warn('saving a point failed', { error: String(error) })
          return 0
        })
        .then(took => host.signal.aborted || later(Math.max(INTERVAL_MS, SHARE * took)))
        .catch(ignored('the failure is logged'))
    }, ms)
    timer.unref()
    host.signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
  }
  later(INTERVAL_MS)
  host.on('turn.settled', ({ conversationId, branch }) => {
    if (branch !== undefined) return
    void saved
      .save({ trigger: 'turn', conversationId, by: `conversation:${conversationId}` })
      .catch(error => host.signal.aborted || host.log.warn('saving a point failed', { error: String(error) }))
  })
}
