import { hash } from 'node:crypto'
import { Refusal, refuse } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { canonical } from '../../../sdk/node/record/chain.js'
import type { Fired, HeldWake } from '../contract.js'
import { refuseUnknownAutomation, type Definition } from '../definitions/definitions.js'
import type { Fires } from './fires.js'
import type { HeldWakes } from './held-wakes.js'
import type { FireOutcome } from './live-fire.js'
import type { FireRecorder } from './recorder.js'
import type { Turns } from './turns.js'

/** The dependencies of releasing held wakes. */
export interface ReleasesDeps {
  readonly held: HeldWakes
  readonly fires: Fires
  readonly recorder: FireRecorder
  readonly turns: Pick<Turns, 'sharedBusy'>
  readonly definition: (id: string) => Promise<Definition | undefined>
}

/** Releases held wakes, each once: by a person, or when their time has come. */
export class Releases {
  readonly #deps: ReleasesDeps
  readonly #turns = new KeyedMutex()
  /** Wakes whose time came while a turn ran in the shared tree. */
  readonly #waiting = new Set<string>()

  constructor(deps: ReleasesDeps) {
    this.#deps = deps
  }

  /** Releases a wake by a person's word. */
  approve(id: string, by: string, expect: string | undefined): Promise<Fired> {
    return this.#turns.with(id, async () => {
      await this.#assertSeen(id, expect)
      return firedAnswer(await this.#release(id, { cause: 'approved', by, approved: true }))
    })
  }

  /** What an approval of a wake would run, by its digest; undefined: its automation is gone. */
  async digest({ id, automationId, payload }: HeldWake): Promise<string | undefined> {
    const found = await this.#deps.definition(automationId)
    if (!found) return undefined
    const { enabled: _enabled, ...automation } = found.automation
    return hash('sha256', canonical({ id, payload, automation }), 'hex')
  }

  async #assertSeen(id: string, expect: string | undefined): Promise<void> {
    if (expect === undefined) return
    const { wake } = this.#deps.held.get(id) ?? refuseUnknownWake(id)
    const digest = (await this.digest(wake)) ?? refuseUnknownAutomation(wake.automationId)
    if (digest === expect) return
    refuse('conflict', `the automation ${wake.automationId} was changed since: look at it again, then approve`, {
      fields: { digest },
    })
  }

  /** Throws a wake away. */
  reject(id: string, by: string, reason: string | undefined): Promise<void> {
    return this.#turns.with(id, async () => {
      const stored = this.#deps.held.get(id) ?? refuseUnknownWake(id)
      await this.#deps.recorder.rejected(stored, by, reason)
      await this.#deps.held.remove(id)
    })
  }

  /** The time of a wake has come: it runs as soon as no turn runs in the shared tree. */
  async due(id: string): Promise<void> {
    await this.#turns.with(id, async () => {
      if (!this.#deps.held.get(id)) return
      if (await this.#deps.turns.sharedBusy()) return void this.#waiting.add(id)
      try {
        await this.#release(id, { cause: 'countdown' })
      } catch (error) {
        const { reason, message } = Refusal.from(error)
        if (reason === 'unavailable') return
        await this.#deps.held.wait(id, `it could not run by itself: ${message}`)
      }
    })
  }

  /** A turn has ended. */
  async turnEnded(): Promise<void> {
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const id of waiting) await this.due(id)
  }

  async #release(
    id: string,
    how: { readonly cause: 'approved' | 'countdown'; readonly by?: string; readonly approved?: true },
  ): Promise<FireOutcome> {
    const { held, fires, definition } = this.#deps
    const { wake, order } = held.get(id) ?? refuseUnknownWake(id)
    const { automation } = (await definition(wake.automationId)) ?? refuseUnknownAutomation(wake.automationId)
    const live = await fires.accept(automation, { ...order, ...how, held: id }, 'queue')
    const outcome = await live!.outcome.promise
    await held.remove(id)
    return outcome
  }
}

const refuseUnknownWake = (id: string): never =>
  refuse(
    'not-found',
    `nothing waits as ${JSON.stringify(id.slice(0, 60))} (any more): GET /automations/pending lists all`,
  )

/** What a fire came to, as an answer. */
export const firedAnswer = (outcome: FireOutcome): Fired => {
  switch (outcome.kind) {
    case 'started':
      return { ok: true, conversationId: outcome.conversationId, run: outcome.run }
    case 'skipped':
      return { ok: true, skipped: outcome.detail }
    case 'held':
      return { ok: true }
  }
}
