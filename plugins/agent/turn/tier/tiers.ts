import { setTimeout as delay } from 'node:timers/promises'
import type { Host } from '../../../../sdk/index.js'
import type { Settings } from '../../../settings/contract.js'
import type { Conversation } from '../../contract.js'
import { completes } from '../../providers/native/completion.js'
import type { Providers } from '../../providers/providers.js'
import type { Frame } from '../frames/frames.js'
import type { JudgedTier } from '../run-entry.js'
import type { Turn } from '../turn.js'
import { FailedRounds } from './failed-rounds.js'
import { JUDGE_ROLE, judgedScore } from './judge.js'
import { signsOf } from './signs.js'

type TierSettings = Pick<Settings, 'autoTier' | 'autoTierEagerness' | 'autoFastModels' | 'quickModel'>

/** What judging turns needs. */
export interface TierDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'emit' | 'log' | 'signal'>
  readonly providers: Pick<Providers, 'find'>
  readonly settings: () => Promise<TierSettings | undefined>
}

/** A turn that is to be judged, and its verdict when there is one. */
interface Judging {
  readonly routes: boolean
  /** The fast models of its provider. */
  readonly models: readonly string[]
  readonly verdict: Promise<Verdict | undefined>
  /** Ends the question. */
  readonly drop: () => void
}
type Verdict = Pick<JudgedTier, 'tier' | 'score' | 'rules'>

/** The difficulty below which a turn is easy. */
const EASY: { readonly [eagerness in Settings['autoTierEagerness']]: number } = {
  cautious: 0.2,
  balanced: 0.35,
  eager: 0.5,
}
/** How long a turn that may be routed waits for its verdict. */
const WAIT_MS = 5_000
const SHADOW_MS = 30_000
const MOST_FAILED = 2
const MOST_RETRIES = 1
const MOST_WHY = 300
/** Faults of the message itself, which no other model mends. */
const OF_MESSAGE = new Set<string | undefined>(['script-syntax', 'unknown-command'])

/** Judges how hard turns are, runs easy ones on a fast model, and moves them back when that fails. */
export class TurnTiers {
  readonly #deps: TierDeps
  readonly #judging = new WeakMap<Turn, Promise<Judging | undefined>>()
  readonly #watched = new WeakSet<Turn>()

  constructor(deps: TierDeps) {
    this.#deps = deps
  }

  /** Begins to judge a new turn, while its tree is prepared; `before` is its conversation before the turn. */
  begin(turn: Turn, before: Conversation): void {
    const { input, resumed } = turn.message
    if (input.tierHold || resumed) return
    const looked = this.#look(turn, before).catch(error => {
      this.#deps.host.log.warn('judging a turn failed', { run: turn.run, error: String(error) })
      return undefined
    })
    this.#judging.set(turn, looked)
  }

  /** Chooses the model of a turn that is about to run; only where it may be routed does the turn wait for a verdict. */
  async route(turn: Turn): Promise<void> {
    const judging = await this.#judging.get(turn)
    this.#judging.delete(turn)
    if (judging?.routes) await this.#routed(turn, judging)
    else void judging?.verdict.then(verdict => verdict && this.#note(turn, verdict, judging))
    this.#watch(turn)
  }

  /**
   * Called with each frame of an adapter. Whether the frame is dropped and its run ends, because the fast model failed
   * and the turn goes on with the chosen one.
   */
  async replaces(turn: Turn, frame: Frame): Promise<boolean> {
    if (frame.kind === 'provider_retry' && frame.attempt > MOST_RETRIES)
      await this.#escalate(turn, 'its provider did not answer it')
    if (frame.kind !== 'error' || OF_MESSAGE.has(frame.code)) return false
    return this.#escalate(turn, frame.message)
  }

  async #look(turn: Turn, before: Conversation): Promise<Judging | undefined> {
    const { host } = this.#deps
    const settings = await this.#deps.settings()
    const { provider, model, effort, thinking } = turn.entry.fields
    if (!settings || settings.autoTier === 'off') return undefined
    const keys = settings.autoFastModels.filter(key => key.startsWith(`${provider}:`))
    const models = keys.map(key => key.slice(provider.length + 1))
    if (models.length === 0 || models.includes(model)) return undefined
    // Where nobody named models of small jobs, no other provider gets to see the words.
    const judges = settings.quickModel.length > 0 ? [] : keys
    if (!(await completes(host, { models: judges, role: JUDGE_ROLE })).available) return undefined
    const dropped = new AbortController()
    const routes = settings.autoTier === 'on'
    const most = EASY[settings.autoTierEagerness]
    const asking = {
      models: judges,
      timeoutMs: routes ? WAIT_MS : SHADOW_MS,
      signal: AbortSignal.any([turn.signal, host.signal, dropped.signal]),
    }
    const signs = signsOf(turn.message, before, { effort, thinking })
    const verdict = async (): Promise<Verdict | undefined> => {
      if (signs.score >= most) return { tier: 'standard', ...signs }
      const said = await judgedScore(host, turn.message.input, asking)
      if (said === undefined) return undefined
      const score = Math.max(signs.score, said)
      return { tier: score < most ? 'fast' : 'standard', score, rules: [...signs.rules, 'judge'] }
    }
    return { routes, models, verdict: verdict(), drop: () => dropped.abort() }
  }

  async #routed(turn: Turn, { models, verdict, drop }: Judging): Promise<void> {
    const found = await Promise.race([verdict, timeout(WAIT_MS, turn.signal)])
    drop()
    const { moving } = turn.entry.fields
    // A person who chose another model meanwhile decides.
    if (!found || turn.stopping || moving) return
    if (found.tier === 'standard') return this.#note(turn, found, { models })
    const usable = await this.#usable(turn.entry.fields.provider, models)
    await this.#note(turn, found, { models, ...usable })
  }

  /** The first of some models of a provider that can be used now, or why none can. */
  async #usable(
    provider: string,
    models: readonly string[],
  ): Promise<{ readonly routed: string } | { readonly denied: string }> {
    const { host, providers } = this.#deps
    const { resolved } = await host.call('models.ladder', { role: 'autoFastModels' })
    const offered = providers.find(provider)?.models ?? []
    const rungs = resolved.filter(rung => rung.provider === provider && models.includes(rung.model))
    const first = rungs.find(({ usable, model }) => usable && (offered.length === 0 || offered.includes(model)))
    if (first) return { routed: first.model }
    return { denied: rungs.find(({ reason }) => reason !== undefined)?.reason ?? 'no fast model can be used now' }
  }

  /** Stores a verdict with its turn and shows it; a turn that ends already is not judged any more. */
  async #note(
    turn: Turn,
    verdict: Verdict,
    { models, ...what }: Pick<Judging, 'models'> & Pick<JudgedTier, 'routed' | 'denied'>,
  ): Promise<void> {
    if (turn.settling || turn.frozen) return
    const { provider, harness, model, effort, thinking, fast } = turn.entry.fields
    const chosen = { provider, harness, model, effort, thinking, fast }
    const tier: JudgedTier = { ...verdict, chosen, ...what }
    const { routed } = what
    // Effort and speed were chosen for the other model.
    const runsOn = routed !== undefined && { model: routed, effort: undefined, fast: undefined }
    await turn.entry.change({ tier, ...runsOn })
    turn.log.push({
      kind: 'tier',
      tier: verdict.tier,
      model: verdict.tier === 'fast' ? (routed ?? models[0] ?? model) : model,
      routed: routed !== undefined,
      score: verdict.score,
      rules: [...verdict.rules, ...(what.denied === undefined ? [] : ['denied'])],
    })
  }

  /** Counts the rounds that fail on the fast model, also after a restart. */
  #watch(turn: Turn): void {
    if (this.#watched.has(turn) || !isRouted(turn)) return
    this.#watched.add(turn)
    const rounds = new FailedRounds()
    turn.onFrame(frame => {
      if (rounds.add(frame) < MOST_FAILED || !isRouted(turn)) return
      this.#escalate(turn, `calls of ${MOST_FAILED} rounds failed`).catch(error =>
        this.#deps.host.log.error('moving a turn to its chosen model failed', {
          run: turn.run,
          error: String(error),
        }),
      )
    })
  }

  /** Moves a turn from the fast model to the chosen one; returns whether it moves. */
  async #escalate(turn: Turn, why: string): Promise<boolean> {
    const { tier } = turn.entry.fields
    if (!tier || !isRouted(turn) || turn.stopping || turn.worked) return false
    const { chosen, routed } = tier
    const continues = this.#deps.providers.find(chosen.provider)?.abilities(chosen.harness).state
    // The move is written first: a kill between both leaves a turn that moves, not one that stays on the fast model.
    const moved = turn.move({ ...chosen, kept: continues ? 'session' : 'record' })
    const stored = turn.entry.change({ tier: { ...tier, escalated: why.slice(0, MOST_WHY) } })
    const text = `${routed} was too small for this turn (${why.slice(0, MOST_WHY)}): it goes on with ${chosen.model}`
    turn.log.push({ kind: 'notice', level: 'info', text, source: 'tier' })
    await Promise.all([moved, stored])
    return true
  }
}

/** Whether a turn is on the fast model still, and not about to move. */
const isRouted = ({ entry: { fields } }: Turn): boolean => {
  const { tier, model, moving } = fields
  return tier?.routed !== undefined && tier.escalated === undefined && model === tier.routed && !moving
}

const timeout = (ms: number, signal: AbortSignal): Promise<undefined> =>
  delay(ms, undefined, { signal, ref: false }).catch(() => undefined)
