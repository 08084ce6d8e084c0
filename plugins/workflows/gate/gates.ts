import { refuse, type Context, type Host, type Input } from '../../../sdk/index.js'
import { Failures, secondsUntil } from '../../../sdk/node/access/failures.js'
import { digest, type FirstAnswers } from '../../../sdk/node/access/first-answers.js'
import type { OwnTokens } from '../../../sdk/node/access/own-tokens.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { GateVerdict, Workflow, WorkflowsCalls } from '../contract.js'
import type { Designs } from '../designs/designs.js'
import { GATE, type Runs } from '../runs/runs.js'
import type { StoredRun } from '../runs/stored-run.js'
import { assertStarts } from '../starts.js'
import type { DayCounts } from './day-counts.js'
import { isJudged, lateVerdict, gateVerdict } from './verdict.js'

/** The run of a caller's key, and its verdict once it has one. */
export interface GateAnswer {
  readonly runId: string
  readonly verdict?: GateVerdict
}
/** The dependencies of gates. */
export interface GatesDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'signal' | 'log'>
  readonly now: () => number
  readonly designs: Designs
  readonly runs: Runs
  readonly tokens: OwnTokens
  readonly counts: DayCounts
  readonly answers: FirstAnswers<GateAnswer>
}

type Call = Input<WorkflowsCalls, 'POST /workflows/{id}/gate'>

/** Without a safety policy nothing is held back. */
const ALLOWED = { verdict: 'allow' } as const
const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const MOST_WRONG = 10
const MOST_KEY = 128
const USUAL_WAIT = 600
/** The runs that a gate may start a day, unless its design says otherwise. */
export const USUAL_DAILY = 50

/** Programs that run a design and wait for its verdict: each with the token of that gate. */
export class Gates {
  readonly #deps: GatesDeps
  readonly #wrong: Failures
  readonly #turns = new KeyedMutex()
  /** How many callers wait for the verdict of a run. */
  readonly #waiting = new Map<string, number>()

  constructor(deps: GatesDeps) {
    this.#deps = deps
    this.#wrong = new Failures(MOST_WRONG, MINUTE, deps.now)
  }

  /** A verdict, which is waited for. */
  async ask(call: Call, { http, signal }: Pick<Context, 'http' | 'signal'>): Promise<GateVerdict> {
    const { address = 'unknown', bearer, idempotencyKey } = http ?? {}
    const workflow = await this.#admitted(call, address, bearer)
    const { wait = USUAL_WAIT } = call
    if (idempotencyKey === undefined) return this.#held(await this.#begin(workflow, call), wait, signal)
    if (idempotencyKey.length < 1 || idempotencyKey.length > MOST_KEY)
      refuse('invalid', `idempotency-key: expected 1 to ${MOST_KEY} characters, found ${idempotencyKey.length}`)
    const key = digest('gate', call.id, idempotencyKey)
    const first = await this.#turns.with(key, () => this.#first(workflow, call, key))
    if (first.verdict) return first.verdict
    const { runs, answers } = this.#deps
    const verdict = await this.#held(runs.get(first.runId), wait, signal)
    return this.#turns.with(key, async () => {
      const given = answers.of(key)?.verdict
      if (given) return given
      if (isJudged(runs.get(first.runId))) await answers.keep(key, { runId: first.runId, verdict })
      return verdict
    })
  }

  /** The design, if the caller has the token of its gate and the settings admit it. */
  async #admitted({ id, token }: Call, address: string, bearer: string | undefined): Promise<Workflow> {
    const { tokens, designs, host } = this.#deps
    const given = token ?? bearer ?? ''
    const right = tokens.holds(id, given)
    // The right token is never refused: many pipelines may share an address with one that guesses.
    const wait = right ? undefined : this.#wrong.wait(address)
    if (wait !== undefined)
      refuse('too-many', `${MOST_WRONG} wrong tokens within a minute: try again later`, { retryAfter: wait })
    const workflow = await designs.find(id)
    const isGate = workflow?.gate !== undefined && tokens.of(id) !== undefined
    if (!isGate || !right) this.#wrong.add(address)
    if (!isGate) return refuse('not-found', 'no workflow of this id has a gate')
    if (!right)
      return refuse('unauthenticated', given ? 'the token is wrong' : 'no token: send it in the query field token')
    const admitted = (await host.serves('safety.admit'))
      ? await host.call('safety.admit', { source: 'workflow' })
      : ALLOWED
    if (admitted.verdict === 'deny') return refuse('forbidden', 'the settings deny gates of workflows (admission)')
    await tokens.used(id, address)
    return workflow
  }

  /** The run of a key: that of its first call. */
  async #first(workflow: Workflow, call: Call, key: string): Promise<GateAnswer> {
    const { answers, runs } = this.#deps
    const known = answers.of(key)
    if (known?.verdict || (known && runs.find(known.runId))) return known
    if (known) return refuse('conflict', `the run ${known.runId} of this idempotency-key was forgotten: use a new one`)
    const { runId } = await this.#begin(workflow, call, key)
    await answers.keep(key, { runId })
    return { runId }
  }

  /** Begins a run, if the day has one left. */
  async #begin(workflow: Workflow, { body }: Call, gateKey?: string): Promise<StoredRun> {
    const { host, designs, runs, counts, now } = this.#deps
    const { id, gate } = workflow
    const request = body?.trim() ? body : undefined
    const begins = await assertStarts(host, designs, workflow, request)
    return this.#turns.with(`day ${id}`, async () => {
      const { dailyMax = USUAL_DAILY } = gate!
      if (counts.of(id) >= dailyMax)
        refuse('too-many', `all ${dailyMax} runs of this day are used`, {
          retryAfter: secondsUntil((Math.floor(now() / DAY) + 1) * DAY, now()),
        })
      await counts.add(id)
      return runs.begin({
        ...{ workflow, ...begins, startedBy: GATE },
        ...(gateKey !== undefined && { gateKey }),
      })
    })
  }

  /** Waits for the verdict of a run; its last caller who leaves stops it. */
  async #held({ runId }: StoredRun, seconds: number, hungUp: AbortSignal): Promise<GateVerdict> {
    const { runs, host } = this.#deps
    const late = AbortSignal.timeout(seconds * 1000)
    this.#waiting.set(runId, (this.#waiting.get(runId) ?? 0) + 1)
    try {
      const over = AbortSignal.any([late, hungUp, host.signal])
      const judged = await runs.until(runId, run => (isJudged(run) ? run : undefined), over)
      return gateVerdict(judged, await runs.result(runId, judged.workflow.gate!.step))
    } catch (error) {
      if (host.signal.aborted) refuse('unavailable', 'the sandbox is shutting down: ask again with the same key')
      if (!late.aborted && !hungUp.aborted) throw error
      const verdict = lateVerdict(runs.get(runId), seconds)
      if (this.#waiting.get(runId) === 1) await runs.stop(runId, undefined, STOPPED)
      return verdict
    } finally {
      const left = this.#waiting.get(runId)! - 1
      if (left > 0) this.#waiting.set(runId, left)
      else this.#waiting.delete(runId)
    }
  }
}

const STOPPED = 'nobody waits for the verdict of its gate any more'
