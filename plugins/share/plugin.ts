import { Refusal, type Contract, type Host } from '../../sdk/index.js'
import { recordingLimits } from '../../sdk/node/record/limited.js'
import { repeat } from '../../sdk/node/concurrency/repeat.js'
import { CurrentMasker } from '../../sdk/node/access/value-masker.js'
import { record } from '../../sdk/node/record/record.js'
import { shareCalls } from './calls.js'
import { shareContract, type ShareCalls } from './contract.js'
import { examples } from './examples.js'
import { Shares } from './shares.js'

export const contract: Contract<ShareCalls> = { ...shareContract, examples }

const SWEEP_MS = 60_000

/** Serves conversations as read-only pages. */
export const activate = async (host: Host): Promise<void> => {
  const failed = (what: string) => (error: unknown) =>
    void (host.signal.aborted || host.log.error(`${what} failed`, { error: String(error) }))
  const shares = new Shares(host)
  const published = (key: string) =>
    void host.call('kernel.events.publish', { domain: 'share', key }).catch(failed('publishing a change'))
  const sweep = async () => {
    await shares.keepOpened()
    for (const { id, conversationId, title } of await shares.expire(Date.now())) {
      published(id)
      await record(host, { type: 'share.expired', actor: 'sandbox:share', conversationId, title })
    }
  }
  /** A conversation that is gone for good takes its pages along. */
  const purged = async (conversationId: string) => {
    for (const share of shares.all) {
      if (share.conversationId !== conversationId || !(await shares.remove(share.id))) continue
      published(share.id)
      const { title } = share
      await record(host, { type: 'share.removed', actor: 'sandbox:share', conversationId, title })
    }
  }
  /** Removes the pages of conversations that went while no daemon ran, or just before it ended. */
  const sweepPurged = async () => {
    for (const id of new Set(shares.all.map(({ conversationId }) => conversationId))) {
      const isGone = await host.call('agent.record', { id, limit: 1 }).then(
        () => false,
        error => Refusal.from(error).reason === 'not-found',
      )
      if (isGone) await purged(id)
    }
  }
  await shares.load()
  host.on('daemon.ready', () => void sweepPurged().catch(failed('removing shares of purged conversations')))
  host.on(
    'conversation.gone',
    ({ conversationId, how }) => void (how === 'purged' && purged(conversationId).catch(failed('removing shares'))),
  )
  repeat(host, SWEEP_MS, 'looking for expired shares', sweep)
  host.stopping(async () => {
    await shares.keepOpened()
  })
  const handlers = shareCalls({ host, shares, secrets: new CurrentMasker(host), published })
  await host.serve(shareContract, recordingLimits(host, ['GET /s/{id}/{path}'], handlers))
}
