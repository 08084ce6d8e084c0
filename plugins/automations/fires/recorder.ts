import type { Host } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { record, type Happened } from '../../../sdk/node/record/record.js'
import type { AutomationRun } from '../contract.js'
import type { Fire, StoredWake } from './fire.js'
import type { LiveFire, TurnEnd } from './live-fire.js'
import type { RunHistory } from './run-history.js'

/** The dependencies of the record of fires. */
export interface FireRecorderDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log'>
  readonly now: () => number
  readonly history: RunHistory
  /** Remembers the answer to a sender that may ask again. */
  readonly answered: (fire: Fire) => Promise<void>
  /** Called after an error: switches the automation off where that is one too many. */
  readonly erred: (id: string) => Promise<void>
  /** Called with the end of a fire of a message, and what its agent said last. */
  readonly replied: (fire: Fire, end: TurnEnd) => void
  /** Called with what a person rejected. */
  readonly rejected: (stored: StoredWake) => Promise<void>
}

const DETAIL = 1000

/** Writes down what became of fires: in the history of their automation and in the activity record. */
export class FireRecorder {
  readonly #deps: FireRecorderDeps

  constructor(deps: FireRecorderDeps) {
    this.#deps = deps
  }

  /** Its turn has started. */
  async fired({ fire }: LiveFire): Promise<void> {
    await this.#deps.answered(fire)
    void this.#tell(fire, { type: 'automation.fired', outcome: 'ok' })
  }

  async skipped({ fire }: LiveFire, detail: string): Promise<void> {
    await this.#add(fire, { outcome: 'skipped', detail })
    void this.#tell(fire, { type: 'automation.skipped', outcome: 'ok', extra: { detail: detail.slice(0, 500) } })
  }

  /** It could not start. */
  async failed({ fire }: LiveFire, detail: string): Promise<void> {
    await this.#deps.answered(fire)
    await this.#add(fire, { outcome: 'error', detail })
    void this.#tell(fire, { type: 'automation.failed', outcome: 'error', error: detail.slice(0, 500) })
    this.#deps.replied(fire, { end: 'failed', failure: detail, costUsd: 0 })
    await this.#deps.erred(fire.automationId)
  }

  async interrupted({ fire }: LiveFire, detail: string): Promise<void> {
    await this.#add(fire, { outcome: 'interrupted', detail })
    void this.#tell(fire, { type: 'automation.failed', outcome: 'error', error: detail })
  }

  /** Its turn has ended. */
  async ended({ fire }: LiveFire, end: TurnEnd): Promise<void> {
    const { now, answered, erred, replied } = this.#deps
    await answered(fire)
    const began = fire.startedAt ?? fire.at
    const turn = {
      ...{ conversationId: fire.conversationId, run: fire.run, costUsd: end.costUsd },
      durationMs: Math.max(0, now() - began),
    }
    const failure = end.failure ?? 'the turn failed'
    if (end.end === 'completed') await this.#add(fire, { outcome: 'completed', ...turn })
    else if (end.end === 'failed') await this.#add(fire, { outcome: 'error', detail: failure, ...turn })
    else {
      const detail = end.end === 'stopped' ? 'somebody stopped the turn' : 'a restart of the sandbox ended the turn'
      await this.#add(fire, { outcome: 'interrupted', detail, ...turn })
    }
    failpoint('automations.fire.recorded')
    const good = end.end === 'completed'
    void this.#tell(fire, {
      type: good ? 'automation.finished' : 'automation.failed',
      outcome: good ? 'ok' : 'error',
      ...(end.end === 'failed' && { error: failure.slice(0, 500) }),
    })
    replied(fire, end)
    if (end.end === 'failed') await erred(fire.automationId)
  }

  /** A person rejected a held wake. */
  async rejected(stored: StoredWake, by: string, reason: string | undefined): Promise<void> {
    const { wake, fire, order } = stored
    const { automationId, createdAt } = wake
    const detail = reason ? `rejected: ${reason}` : 'rejected'
    await this.#deps.history.add(automationId, fire, {
      at: createdAt,
      outcome: 'skipped',
      detail,
      cause: order.cause,
      by,
    })
    await this.#deps.rejected(stored)
    void this.#record({ type: 'automation.rejected', outcome: 'ok', actor: by, automationIds: [automationId] })
  }

  #add(fire: Fire, end: Pick<AutomationRun, 'outcome'> & Partial<AutomationRun>): Promise<void> {
    const { automationId, id, cause, by, at } = fire
    const detail = end.detail?.slice(0, DETAIL)
    return this.#deps.history.add(automationId, id, {
      ...{ at, cause, ...end },
      ...(detail !== undefined && { detail }),
      ...(by !== undefined && { by }),
    })
  }

  #tell({ automationId, conversationId, run, cause, by, origin }: Fire, happened: Happened): Promise<void> {
    const isPerson = cause === 'hand' || cause === 'approved'
    return this.#record({
      ...{ automationIds: [automationId], conversationId, turnId: run },
      ...(isPerson && by !== undefined && { actor: by }),
      ...(origin && { origin: { ...origin }, source: origin.channelId ?? by ?? origin.provider }),
      ...happened,
      extra: { cause, ...(by !== undefined && !isPerson && { from: by }), ...happened.extra },
    })
  }

  #record(happened: Happened): Promise<void> {
    return record(this.#deps.host, { audience: 'viewer', ...happened })
  }
}
