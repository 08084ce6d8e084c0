import { refuse, Refusal, type Context, type Host } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { record } from '../../../sdk/node/record/record.js'
import type { Loop, OwnedLoop } from '../../loops/contract.js'
import type { WorkflowRunState } from '../contract.js'
import type { HandedResult } from './handed.js'
import { StepLoops } from './step-loops.js'
import {
  begunRun,
  runOutcome,
  isOverspent,
  readySteps,
  runIdOf,
  shortResult,
  stepOf,
  withoutBlocked,
  withStep,
  type RunOrder,
  type StepResult,
  type StoredRun,
  type StoredStep,
} from './stored-run.js'

const RUN = 'run/'
const RESULT = 'step/'
const MOST_DRIVEN = 4
const MOST_ENDED = 200
const MOST_RESUMED = 3
const BY_ITSELF = 'sandbox:workflow'

/** The dependencies of runs. */
export interface RunsDeps {
  readonly host: Pick<Host, 'store' | 'log' | 'emit' | 'call' | 'serves' | 'signal'>
  /** Called after each change of a run that clients see. */
  readonly changed: (runId: string) => void
}

/** The runs: each a document, replaced at every change of a step, and in memory. */
export class Runs {
  readonly #deps: RunsDeps
  readonly #loops: StepLoops
  readonly #all = new Map<string, StoredRun>()
  /** The runs whose steps start. */
  readonly #driven = new Set<string>()
  /** Serialises the changes of a run. */
  readonly #lock = new KeyedMutex()
  /** The next change of a run, for those who wait for it. */
  readonly #next = new Map<string, PromiseWithResolvers<void>>()

  readonly #recovered = Promise.withResolvers<void>()
  /** Resolves when the runs of the last start of the daemon go on. */
  readonly recovered: Promise<void> = this.#recovered.promise

  constructor(deps: RunsDeps) {
    this.#deps = deps
    this.#loops = new StepLoops(deps.host)
  }

  load(documents: readonly (readonly [key: string, value: unknown])[]): void {
    for (const [key, value] of documents)
      if (key.startsWith(RUN)) this.#all.set(key.slice(RUN.length), value as StoredRun)
  }

  /** Newest first. */
  get all(): StoredRun[] {
    return [...this.#all.values()].sort((one, other) => other.startedAt - one.startedAt)
  }

  find(id: string): StoredRun | undefined {
    return this.#all.get(id)
  }

  get(id: string): StoredRun {
    return this.find(id) ?? refuse('not-found', `there is no run ${JSON.stringify(id.slice(0, 64))}`)
  }

  /** What a step hands on, whole; undefined: it has not ended. */
  async result(runId: string, stepId: string): Promise<StepResult | undefined> {
    return this.#deps.host.store.get<StepResult>(resultKey(runId, stepId))
  }

  /** What the steps of a run hand on. */
  async results({ runId, steps }: StoredRun): Promise<Map<string, StepResult>> {
    const found = await Promise.all(
      steps.map(async ({ stepId }) => [stepId, await this.result(runId, stepId)] as const),
    )
    return new Map(found.flatMap(([id, result]) => (result ? [[id, result] as const] : [])))
  }

  /** Begins a run; it waits if enough others are going. */
  async begin(order: RunOrder, context?: Context): Promise<StoredRun> {
    const [newest] = this.all
    // Pages of the list end with this time, so no two runs have the same.
    const run = begunRun(order, Math.max(Date.now(), newest ? newest.startedAt + 1 : 0))
    await this.#put(run)
    failpoint('workflows.run.stored')
    const extra = { workflow: run.workflow.id, name: run.workflow.name, startedBy: run.startedBy }
    await record(
      this.#deps.host,
      { ...told('workflow.started', run, extra), ...(!context && { actor: run.startedBy }) },
      context,
    )
    this.#admit()
    return run
  }

  /** Goes on with the runs that the last start of the daemon left. */
  async recover(): Promise<void> {
    for (const run of this.all.filter(({ state }) => state === 'running').reverse())
      await this.#recover(run).catch(error => this.#failed(run.runId, error))
    this.#admit()
    this.#recovered.resolve()
  }

  async #recover(run: StoredRun): Promise<void> {
    const { runId, resumed, startedBy, gateKey, ending, steps } = run
    const isUnderWay = steps.some(({ state }) => state !== 'pending')
    // The caller of a gate is gone with its connection, and without a key nobody can ask again.
    const left = startedBy === GATE && gateKey === undefined && { ending: 'stopped' as const, detail: UNHEARD }
    const given = isUnderWay && resumed >= MOST_RESUMED && { ending: 'error' as const }
    const counted = isUnderWay && !given && { resumed: resumed + 1 }
    const next: StoredRun = { ...run, ...counted, ...(ending === undefined && (left || given)) }
    await this.#put(next)
    if (next.ending !== undefined) return this.#halt(runId)
    if (!isUnderWay) return
    this.#driven.add(runId)
    await this.#locked(runId, async now => {
      for (const step of now.steps.filter(({ state }) => state === 'running')) await this.#start(runId, step)
    })
    await this.#advance(runId)
  }

  /** Ends a run: its turns in hand stop, and nothing else starts; returns when all have ended. */
  async stop(id: string, context?: Context, detail?: string): Promise<void> {
    if (this.get(id).state !== 'running') return
    await this.#locked(id, async run => {
      if (run.ending === undefined)
        await this.#put({ ...run, ending: 'stopped', ...(detail !== undefined && { detail }) })
    })
    await this.#halt(id, context)
    await this.until(id, ({ state }) => state !== 'running' || undefined)
  }

  /** Waits until something is found in a run. */
  async until<T>(id: string, found: (run: StoredRun) => T | undefined, signal?: AbortSignal): Promise<T> {
    const aborted = Promise.withResolvers<void>()
    const give = () => aborted.resolve()
    signal?.addEventListener('abort', give, { once: true })
    try {
      for (;;) {
        const value = found(this.get(id))
        if (value !== undefined) return value
        signal?.throwIfAborted()
        const next = this.#next.get(id) ?? Promise.withResolvers<void>()
        this.#next.set(id, next)
        await Promise.race([next.promise, aborted.promise])
      }
    } finally {
      signal?.removeEventListener('abort', give)
    }
  }

  /** Marks a run that has ended as archived, or as back. */
  async archive(id: string, archivedAt: number | undefined): Promise<void> {
    await this.#locked(id, async ({ archivedAt: _before, ...run }) =>
      this.#put({ ...run, ...(archivedAt !== undefined && { archivedAt }) }),
    )
  }

  /** The loop on a conversation changed. */
  loopChanged(conversationId: string): void {
    const id = runIdOf(conversationId)
    if (id === undefined || this.find(id)?.state !== 'running') return
    this.#look(id, conversationId).catch(error => this.#failed(id, error))
  }

  /** A conversation was deleted; an archived run goes with the last of its conversations. */
  async gone(conversationId: string): Promise<void> {
    const id = runIdOf(conversationId)
    const known = id === undefined ? undefined : this.find(id)
    if (!known?.steps.some(step => step.conversationId === conversationId)) return
    await this.#locked(known.runId, async run => {
      const lost = run.steps.filter(step => step.conversationId === conversationId)
      const next = lost.map(step => ({ ...step, gone: true as const })).reduce(withStep, run)
      const isAllGone = next.steps.every(({ gone, startedAt }) => gone || startedAt === undefined)
      if (next.archivedAt !== undefined && isAllGone) await this.#forget(next)
      else await this.#put(next)
    })
  }

  /** Lets runs that wait begin, oldest first. */
  #admit(): void {
    const waiting = this.all.filter(
      ({ runId, state, ending }) => state === 'running' && !ending && !this.#driven.has(runId),
    )
    for (const { runId } of waiting.reverse()) {
      if (this.#driven.size >= MOST_DRIVEN) return
      this.#driven.add(runId)
      this.#advance(runId).catch(error => this.#failed(runId, error))
    }
  }

  /** Takes a run as far as it gets without its steps in hand. */
  #advance(id: string): Promise<void> {
    return this.#locked(id, async () => {
      for (;;) {
        let run = this.get(id)
        if (run.state !== 'running') return
        if (run.ending === undefined && isOverspent(run)) {
          run = await this.#put({ ...run, ending: 'overspent' })
          this.#halt(id).catch(error => this.#failed(id, error))
        }
        const open = withoutBlocked(run, Date.now())
        if (open !== run) run = await this.#put(open)
        const end = runOutcome(run)
        if (end) return this.#end(run, end)
        const ready = run.ending === undefined && this.#driven.has(id) ? readySteps(run) : []
        if (ready.length === 0) return
        for (const step of ready) await this.#start(id, step)
      }
    })
  }

  /** Starts a step, or goes on with one that a restart interrupted. */
  async #start(id: string, { detail: _detail, ...step }: StoredStep): Promise<void> {
    const begun: StoredStep = { ...step, state: 'running', startedAt: step.startedAt ?? Date.now() }
    const run = await this.#put(withStep(this.get(id), begun))
    failpoint('workflows.step.noted')
    let owned: OwnedLoop
    try {
      owned = await this.#loops.start(run, begun, await this.#handed(run, step.stepId))
    } catch (error) {
      const { reason, message } = Refusal.from(error)
      // The next start of the daemon goes on with it.
      if (this.#deps.host.signal.aborted || reason === 'unavailable') throw error
      if (reason === 'failed') this.#deps.host.log.error('starting a step failed', { run: id, error: stackOf(error) })
      await this.#put(withStep(this.get(id), { ...begun, state: 'failed', detail: message, endedAt: Date.now() }))
      return
    }
    failpoint('workflows.step.started')
    await this.#take(id, begun, owned)
  }

  /** What the steps before a step hand to it. */
  async #handed(run: StoredRun, stepId: string): Promise<HandedResult[]> {
    const later = stepOf(run, stepId)
    const results = await Promise.all(
      [...new Set<string>(later.needs)].map(async need => {
        const result = await this.result(run.runId, need)
        return result && { ...result, step: stepOf(run, need), same: later.handoff === 'continue' }
      }),
    )
    return results.filter(result => result !== undefined)
  }

  /** Reads the loop of a step in hand, and goes on if that has ended. */
  async #look(id: string, conversationId: string): Promise<void> {
    await this.#locked(id, async run => {
      const step = run.steps.find(each => each.conversationId === conversationId && each.state === 'running')
      if (step) await this.#take(id, step, await this.#loops.read(run, step))
    })
    await this.#advance(id)
  }

  /** Writes what the loop of a step says. */
  async #take(
    id: string,
    { waitingFor: _need, ...step }: StoredStep,
    { loop, report, documentPath }: OwnedLoop,
  ): Promise<void> {
    if (!loop) {
      await this.#put(withStep(this.get(id), { ...step, ...LOST, endedAt: Date.now() }))
      return
    }
    const { waitingFor, state: loopState, costUsd, iterations, detail } = loop
    const now: StoredStep = {
      ...{ ...step, loopState, costUsd, iterations: iterations.length },
      ...(waitingFor !== undefined && { waitingFor }),
    }
    if (loopState === 'running') {
      if (differs(this.get(id), now)) await this.#put(withStep(this.get(id), now))
      return
    }
    const result = await this.#loops.result(step, loop, report)
    await this.#deps.host.store.set(resultKey(id, step.stepId), result)
    failpoint('workflows.step.result')
    await this.#put(
      withStep(this.get(id), {
        ...{ ...now, ...shortResult(result), state: stateOf(loop), endedAt: Date.now() },
        ...(detail !== undefined && { detail }),
        ...(documentPath !== undefined && { reportPath: documentPath }),
      }),
    )
    failpoint('workflows.step.ended')
  }

  /** Stops the loops of the steps in hand. */
  async #halt(id: string, context?: Context): Promise<void> {
    const inHand = this.get(id).steps.filter(({ state }) => state === 'running')
    await Promise.all(inHand.map(step => this.#loops.stop(step, context)))
    for (const { conversationId } of inHand) await this.#look(id, conversationId)
    await this.#advance(id)
  }

  async #end({ ending: _ending, ...run }: StoredRun, state: Exclude<WorkflowRunState, 'running'>): Promise<void> {
    const { runId, costUsd } = run
    const detail = run.detail ?? whyEnded(run, state)
    await this.#put({ ...run, state, endedAt: Date.now(), ...(detail !== undefined && { detail }) })
    this.#driven.delete(runId)
    const { host } = this.#deps
    host.emit('workflow.settled', { runId, state })
    const outcome = state === 'error' ? ('error' as const) : ('ok' as const)
    const extra = { workflow: run.workflow.id, state, costUsd }
    await record(host, { ...told('workflow.finished', run, extra), outcome, actor: BY_ITSELF })
    for (const old of this.all.filter(each => each.state !== 'running').slice(MOST_ENDED)) await this.#forget(old)
    this.#admit()
  }

  async #forget({ runId, steps }: StoredRun): Promise<void> {
    const { store } = this.#deps.host
    for (const { stepId } of steps) await store.delete(resultKey(runId, stepId))
    await store.delete(RUN + runId)
    this.#all.delete(runId)
    this.#tell(runId)
  }

  async #put(run: StoredRun): Promise<StoredRun> {
    await this.#deps.host.store.set(RUN + run.runId, run)
    this.#all.set(run.runId, run)
    this.#tell(run.runId)
    return run
  }

  #tell(runId: string): void {
    this.#next.get(runId)?.resolve()
    this.#next.delete(runId)
    this.#deps.changed(runId)
  }

  #locked(id: string, work: (run: StoredRun) => Promise<unknown>): Promise<void> {
    return this.#lock.with(id, async () => {
      const run = this.find(id)
      if (run) await work(run)
    })
  }

  #failed(runId: string, error: unknown): void {
    const { host } = this.#deps
    // The next start of the daemon goes on with it.
    if (host.signal.aborted || Refusal.from(error).reason === 'unavailable') return
    host.log.error('going on with a run failed', { run: runId, error: stackOf(error) })
  }
}

/** Who starts the run of a gate. */
export const GATE = 'sandbox:gate'
const UNHEARD = 'the sandbox restarted, so its caller does not wait any more'
const LOST = { state: 'failed', detail: 'its conversation was deleted' } as const

const stackOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error))

const resultKey = (runId: string, stepId: string): string => `${RESULT}${runId}/${stepId}`

const told = (type: string, { runId }: Pick<StoredRun, 'runId'>, extra: object) =>
  ({ type, audience: 'viewer', outcome: 'ok', extra: { run: runId, ...extra } }) as const

const stateOf = ({ state }: Pick<Loop, 'state'>): 'done' | 'stopped' | 'failed' =>
  state === 'done' || state === 'stopped' ? state : 'failed'

const differs = (run: StoredRun, now: StoredStep): boolean =>
  JSON.stringify(run.steps.find(({ stepId }) => stepId === now.stepId)) !== JSON.stringify(now)

const whyEnded = ({ steps, workflow, costUsd }: StoredRun, state: WorkflowRunState): string | undefined => {
  if (state === 'overspent') return `its steps cost ${costUsd} USD, at most ${workflow.maxSpendUsd} were allowed`
  if (state === 'error') return `the sandbox ended ${MOST_RESUMED + 1} times while it was going`
  const failed =
    state === 'failed' ? steps.find(step => step.state === 'failed' || step.state === 'stopped') : undefined
  return (
    failed && `step ${failed.stepId} ended as ${failed.state}${failed.detail === undefined ? '' : `: ${failed.detail}`}`
  )
}
