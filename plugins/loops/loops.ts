import { refuse, Refusal, type Context, type Host } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import { sendPush } from '../../sdk/node/push/send-push.js'
import { promptWords } from '../../sdk/node/push/words.js'
import { record } from '../../sdk/node/record/record.js'
import type { LoopState } from './contract.js'
import type { LoopFiles } from './documents.js'
import type { RoundEnd, Rounds } from './rounds.js'
import { isStalled, isUnverified, noRoom, type StoredLoop } from './stored-loop.js'

const MOST_RESUMED = 3
const BY_ITSELF = 'sandbox:loop'
const UNEXPECTED = 'it failed unexpectedly; the log of the sandbox says why'

/** The dependencies of loops. */
export interface LoopsDeps {
  readonly host: Pick<Host, 'store' | 'log' | 'emit' | 'call' | 'serves' | 'signal' | 'place'>
  readonly files: LoopFiles
  readonly rounds: Rounds
  /** Called after each change of a loop that clients see. */
  readonly changed: (conversationId: string) => void
}

/** A running loop: what ends its waiting, and when it is over. */
interface Drive {
  readonly stop: AbortController
  /** The end of the round in hand. */
  end: PromiseWithResolvers<RoundEnd>
  /** A need of the conversation was settled. */
  need: PromiseWithResolvers<void>
  over: Promise<void>
}

/** The newest loop of each conversation: a document, replaced after every step, and in memory. */
export class Loops {
  readonly #deps: LoopsDeps
  readonly #all = new Map<string, StoredLoop>()
  readonly #drives = new Map<string, Drive>()
  /** Serialises starting and resuming on a conversation. */
  readonly #begins = new KeyedMutex()

  readonly #recovered = Promise.withResolvers<void>()
  /** Resolves when it is known which loops of the last run of the daemon go on. */
  readonly recovered: Promise<void> = this.#recovered.promise

  constructor(deps: LoopsDeps) {
    this.#deps = deps
  }

  /** Reads the stored loops. */
  async load(): Promise<void> {
    for (const [id, loop] of await this.#deps.host.store.all<StoredLoop>()) {
      this.#all.set(id, loop)
      if (loop.state === 'running') this.#drives.set(id, newDrive())
    }
  }

  /** Newest first. */
  get all(): StoredLoop[] {
    return [...this.#all.values()].sort((one, other) => other.startedAt - one.startedAt)
  }

  /** The time of a loop that starts now: two never have the same, which pages of the list end with. */
  get now(): number {
    const [newest] = this.all
    return Math.max(Date.now(), newest ? newest.startedAt + 1 : 0)
  }

  find(id: string): StoredLoop | undefined {
    return this.#all.get(id)
  }

  get(id: string): StoredLoop {
    return this.find(id) ?? refuse('not-found', `there is no loop on ${JSON.stringify(id.slice(0, 64))}`)
  }

  /**
   * Begins a loop with its first or next round, for a caller or for another group; the loop that it replaces comes back
   * if the round is refused.
   */
  begin(id: string, loop: () => StoredLoop, context?: Context): Promise<StoredLoop> {
    return this.#begins.with(id, async () => {
      const begun = loop()
      const replaced = this.find(id)
      this.#drives.set(id, newDrive())
      try {
        await this.#round({ ...begun, ...(replaced && { replaces: replaced }) }, { asked: true, context })
      } catch (error) {
        this.#drives.delete(id)
        await this.#restore(id, replaced)
        throw error
      }
      failpoint('loops.begun')
      this.#drive(id)
      const extra = { goal: begun.goal.slice(0, 200), rounds: begun.iterations.length }
      const happened = { ...told('loop.started', id), ...(!context && { actor: BY_ITSELF }), extra }
      await record(this.#deps.host, happened, context)
      this.#changed(id)
      return this.get(id)
    })
  }

  /** Goes on with the loops that the last run of the daemon left running. */
  async recover(): Promise<void> {
    for (const loop of this.all.filter(({ state }) => state === 'running'))
      await this.#recover(loop).catch(error => this.#failed(loop.conversationId, error))
    this.#recovered.resolve()
  }

  async #recover(loop: StoredLoop): Promise<void> {
    const { conversationId: id, round, resumed, replaces } = loop
    if (round) {
      const fate = await this.#deps.rounds.fate(round)
      // The call that began it has not answered.
      if (!fate && round.asked) {
        this.#drives.delete(id)
        return this.#restore(id, replaces)
      }
      if (resumed >= MOST_RESUMED) {
        await this.#deps.rounds.halt(loop)
        const detail = `the sandbox ended ${resumed + 1} times in its rounds`
        const { round: _round, ...rest } = loop
        return this.#end({ ...rest, resumed: resumed + 1 }, 'error', detail)
      }
      await this.#put({ ...loop, resumed: resumed + 1 })
      if (!fate?.open) this.#drives.get(id)!.end.resolve(fate ?? { end: 'interrupted' })
    }
    this.#drive(id)
  }

  async #restore(id: string, replaced: StoredLoop | undefined): Promise<void> {
    if (replaced) return this.#put(replaced)
    await this.#deps.host.store.delete(id)
    this.#all.delete(id)
  }

  /** The end of a run, if it is that of a round. */
  settled(id: string, run: string, end: RoundEnd): void {
    if (this.find(id)?.round?.run === run) this.#drives.get(id)?.end.resolve(end)
  }

  /** A need of a conversation was settled. */
  answered(id: string): void {
    this.#drives.get(id)?.need.resolve()
  }

  /** Ends a loop: with `now` also its round, and waits for that. */
  async stop(id: string, { now, context }: { readonly now: boolean; readonly context?: Context }): Promise<void> {
    const drive = this.#drives.get(id)
    const loop = this.get(id)
    if (!drive || loop.state !== 'running') return
    await this.#put({ ...loop, stopping: true })
    if (!now && loop.round) return this.#changed(id)
    drive.stop.abort()
    const { round } = this.get(id)
    if (round && !(await this.#deps.rounds.halt(this.get(id), context))) drive.end.resolve({ end: 'stopped' })
    await drive.over
  }

  /** Somebody stopped, archived or removed the conversation: its turn ends or has ended. */
  async stopped(id: string): Promise<void> {
    const drive = this.#drives.get(id)
    const loop = this.find(id)
    if (!drive || loop?.state !== 'running' || drive.stop.signal.aborted) return
    drive.stop.abort()
    await this.#put({ ...this.get(id), stopping: true })
    if (!(await this.#deps.rounds.isLive(this.get(id)))) {
      await this.#deps.rounds.withdraw(this.get(id))
      drive.end.resolve({ end: 'stopped' })
    }
    await drive.over
  }

  /** A conversation is gone; a purged one takes its loop along. */
  async gone(id: string, purged: boolean): Promise<void> {
    await this.stopped(id)
    if (!purged || !this.find(id)) return
    await this.#deps.files.remove(id)
    await this.#restore(id, undefined)
    this.#changed(id)
  }

  #drive(id: string): void {
    const drive = this.#drives.get(id)!
    drive.over = this.#rounds(id, drive)
      .catch(error => this.#failed(id, error))
      .finally(() => {
        if (this.#drives.get(id) === drive) this.#drives.delete(id)
      })
  }

  /** Round after round, until the loop has ended. */
  async #rounds(id: string, drive: Drive): Promise<void> {
    const { rounds, host } = this.#deps
    // A new loop on the conversation has its own.
    while (this.#drives.get(id) === drive && this.find(id)?.state === 'running') {
      if (!this.get(id).round) {
        await this.#next(id, drive)
        continue
      }
      const end = await drive.end.promise
      drive.end = Promise.withResolvers()
      const loop = this.get(id)
      if (end.end === 'interrupted' && !loop.stopping) {
        const { round: _round, ...again } = loop
        await this.#put(again)
        continue
      }
      const ended = await rounds.judge(loop, end, AbortSignal.any([drive.stop.signal, host.signal]))
      // What a call changed meanwhile stays.
      const { round: _round, note: _note, replaces: _replaces, ...now } = this.get(id)
      await this.#put({ ...now, ...ended })
      failpoint('loops.round.recorded')
      this.#changed(id)
    }
  }

  /** Ends the loop, waits for a person, or begins the next round. */
  async #next(id: string, drive: Drive): Promise<void> {
    const loop = this.get(id)
    const { signal } = drive.stop
    const last = loop.iterations.at(-1)
    if (last?.outcome === 'done') return this.#end(loop, 'done', last.document?.reason)
    if (loop.stopping || signal.aborted) return this.#end(loop, 'stopped')
    const isNew = loop.iterations.length > (loop.stallFrom ?? 0)
    if (last?.outcome === 'error' && isNew && isUnverified(loop)) return this.#end(loop, 'error', last.detail)
    const full = noRoom(loop)
    if (full) return this.#end(loop, full.state, full.detail)
    if (isStalled(loop)) return this.#end(loop, 'stalled', `${loop.stallLimit} rounds in a row left the tree unchanged`)
    const need = await this.#deps.rounds.openNeed(id)
    if (need !== undefined) {
      if (loop.waitingFor !== need) {
        await this.#put({ ...loop, waitingFor: need })
        this.#changed(id)
      }
      await Promise.race([drive.need.promise, aborted(signal)])
      drive.need = Promise.withResolvers()
      return
    }
    try {
      await this.#round(loop)
    } catch (error) {
      const { reason, message } = Refusal.from(error)
      if (reason === 'unavailable' || reason === 'failed') throw error
      const { round: _round, ...rest } = this.get(id)
      return this.#end(rest, 'error', message)
    }
    // A stop that came meanwhile found no turn to end.
    if (signal.aborted && !(await this.#deps.rounds.halt(this.get(id)))) drive.end.resolve({ end: 'stopped' })
  }

  /** Begins a round: what is needed to go on is stored before it is accepted. */
  async #round(
    { waitingFor: _need, ...loop }: StoredLoop,
    { asked = false, context }: { readonly asked?: boolean; readonly context?: Context | undefined } = {},
  ): Promise<void> {
    const { conversationId: id } = loop
    const round = await this.#deps.rounds.prepare(loop, asked)
    await this.#put({ ...loop, round })
    failpoint('loops.round.noted')
    await this.#deps.rounds.start(this.get(id), round, context)
    failpoint('loops.round.accepted')
    const { asked: _asked, ...accepted } = round
    const { replaces: _replaces, ...now } = this.get(id)
    await this.#put({ ...now, round: accepted })
    if (!asked) this.#changed(id)
  }

  async #end(
    { waitingFor: _need, stopping: _stopping, ...loop }: StoredLoop,
    state: Exclude<LoopState, 'running'>,
    detail?: string,
  ): Promise<void> {
    const { conversationId: id, costUsd, report, iterations } = loop
    await this.#put({ ...loop, state, endedAt: Date.now(), ...(detail !== undefined && { detail }) })
    const { host } = this.#deps
    const document = iterations.at(-1)?.document
    host.emit('loop.settled', {
      ...{ conversationId: id, state, costUsd },
      ...(document && { document }),
      ...(report !== undefined && { report }),
    })
    const outcome = state === 'error' ? ('error' as const) : ('ok' as const)
    const extra = { state, rounds: iterations.length, costUsd }
    await record(host, { ...told('loop.ended', id), outcome, actor: BY_ITSELF, extra })
    this.#changed(id)
    if (state !== 'stopped') await this.#tell(loop, state)
  }

  /** Tells who started a loop of its end, as of a turn that finished. */
  async #tell({ conversationId, startedBy, goal }: StoredLoop, state: LoopState): Promise<void> {
    const { host, rounds } = this.#deps
    const conversation = (await rounds.state(conversationId).catch(() => undefined))?.conversation
    const text = `The loop is ${state}: ${promptWords(goal)}`
    await sendPush(host, { moment: 'finished', conversationId, startedBy, text }, conversation)
  }

  async #failed(id: string, error: unknown): Promise<void> {
    const { host } = this.#deps
    // The next start of the daemon goes on with it.
    if (host.signal.aborted || Refusal.from(error).reason === 'unavailable') return
    host.log.error('a loop failed because of a bug', { conversation: id, error: stackOf(error) })
    const { round: _round, ...loop } = this.get(id)
    await this.#end(loop, 'error', UNEXPECTED).catch(again =>
      host.log.error('ending a loop failed', { conversation: id, error: stackOf(again) }),
    )
  }

  #changed(id: string): void {
    this.#deps.host.emit('loop.changed', { conversationId: id })
    this.#deps.changed(id)
  }

  async #put(loop: StoredLoop): Promise<void> {
    await this.#deps.host.store.set(loop.conversationId, loop)
    this.#all.set(loop.conversationId, loop)
  }
}

const newDrive = (): Drive => ({
  stop: new AbortController(),
  end: Promise.withResolvers(),
  need: Promise.withResolvers(),
  over: Promise.resolve(),
})

const told = (type: string, conversationId: string) =>
  ({ type, conversationId, audience: 'viewer', outcome: 'ok' }) as const

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })

const stackOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error))
