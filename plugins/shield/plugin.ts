import type { Contract, Host } from '../../sdk/index.js'
import { repeat } from '../../sdk/node/concurrency/repeat.js'
import { record } from '../../sdk/node/record/record.js'
import { shieldCalls } from './calls.js'
import { shieldContract, type ShieldedRequest, type ShieldCalls } from './contract.js'
import { examples } from './examples.js'
import { Gateway } from './gateway/gateway.js'
import { StoredSecrets } from './gateway/stored-secrets.js'
import { SHIELD_FILE, ShieldFile } from './policy/shield-file.js'
import { countedDay, ShieldCounts } from './stats/shield-counts.js'
import { TokenStore } from './tokens/token-store.js'
import { VaultKey } from './tokens/vault-key.js'

export const contract: Contract<ShieldCalls> = { ...shieldContract, examples }

const MINUTE_MS = 60_000
const SWEEP_MS = 3_600_000
const KEPT_MS = 400 * 86_400_000

/** Masks what leaves for models, restores what comes back, and keeps policy, tokens and counts. */
export const activate = async (host: Host): Promise<void> => {
  const failed = (what: string) => (error: unknown) =>
    void (host.signal.aborted || host.log.error(`${what} failed`, { error: String(error) }))
  const publish = (key?: string) =>
    void host
      .call('kernel.events.publish', { domain: 'privacy', ...(key !== undefined && { key }) })
      .catch(failed('publishing a change'))
  let publishedAt = -MINUTE_MS
  const counted = () => {
    const now = performance.now()
    if (now - publishedAt < MINUTE_MS) return
    publishedAt = now
    publish()
  }
  const key = new VaultKey(host)
  const file = new ShieldFile(host.place.workspace, host.files, key)
  const tokens = new TokenStore(host.journal, key)
  const secrets = new StoredSecrets(host)
  const counts = new ShieldCounts(host.journal, counted, failed('counting what was masked'))
  const refused = ({ conversationId, provider }: ShieldedRequest, kinds: readonly string[]) => {
    publish(conversationId)
    const about = conversationId !== undefined && { conversationId }
    void record(host, { type: 'shield.blocked', ...about, extra: { provider, kinds: kinds.join(', ') } })
  }
  const gateway = new Gateway({ file, tokens, secrets, counts, log: host.log, refused })

  host.boot('Policy of the privacy shield', () => file.recover())
  host.contribute('system.manifestProblems', async () => [{ path: SHIELD_FILE, problems: await file.problems() }])
  repeat(host, SWEEP_MS, 'removing old counts', () => counts.sweep(countedDay(Date.now() - KEPT_MS)))
  host.stopping(() => counts.idle())
  await host.serve(shieldContract, shieldCalls({ host, file, tokens, secrets, counts, gateway, publish }))
}
