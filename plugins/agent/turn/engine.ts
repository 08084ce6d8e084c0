import { Refusal, ignored } from '../../../sdk/index.js'
import type { RefusalBody } from '../../../sdk/refusal.js'
import { GitFailure } from '../../../sdk/node/programs/git.js'
import { isFull, writeFailure } from '../../../sdk/node/files/disk.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import type { Conversation, ConversationState, TurnInput } from '../contract.js'
import { framesOf } from './frames/frame-log.js'
import type { Frame, RunEnd } from './frames/frames.js'
import { timeoutAfter } from './timeout-after.js'
import { AdapterRun, applySwitch } from './adapter-run.js'
import { resumableOf } from './recovery/outage.js'
import { shownMessages } from '../queue/queue.js'
import type { EntryFields, RunMessage } from './run-entry.js'
import { Turn, type TurnHooks } from './turn.js'
import type { PreparedTurn } from './environment/environment.js'
import { Arrivals } from './arrivals.js'
import type { EngineDeps } from './engine-deps.js'
import { account, closeRun, writtenDown } from './end.js'
import { optionsOf, type TurnOptions } from './options.js'
import { requestOf, type Resume } from './request.js'

const BUDGET = 'budget' as const
const PATIENCE_MS = 10_000
const HOLD_MS = 30_000
const ENDING_RETRIES = [500, 2_000, 5_000]
const NO_ROOM: RefusalBody = {
  reason: 'too-large',
  message: 'the disk of the sandbox is full, so this turn stopped: free some space and send its message again',
}
const UNWRITTEN: RefusalBody = { reason: 'failed', message: 'the end of the turn could not be written' }
const FRAMES_KEPT_MS = 60_000
const REPORT = 16_000

/** One live turn per conversation: starts it, feeds it, ends it, and starts the next. */
export class Engine {
  readonly #deps: EngineDeps
  readonly #turns = new Map<string, Turn>()
  /** Who waits for the turns of queued runs. */
  readonly arrivals = new Arrivals<Turn>()
  /** The streams that are being ended. */
  readonly #closings = new Map<string, Promise<void>>()
  /** Why the end of a run could not be written; the next start writes it. */
  readonly #givenUp = new Map<string, RefusalBody>()
  #closing = false

  readonly #hooks: TurnHooks = {
    cancel: async turn => void (await this.stop(turn.conversationId)),
    afterAnswer: async (turn, card) => {
      // The tree must not change while a subagent works in it.
      if ((card.kind !== 'plan' && card.kind !== 'question') || turn.stopping || turn.record.helpers.open.length) return
      await this.#deps.environment.refresh(turn, this.#deps.conversations.get(turn.conversationId))
    },
  }

  constructor(deps: EngineDeps) {
    this.#deps = deps
  }

  /** Whether the daemon is stopping, so that no turn can start. */
  get closing(): boolean {
    return this.#closing
  }

  /** The live turn of a conversation. */
  live(conversationId: string): Turn | undefined {
    return this.#turns.get(conversationId)
  }

  /** Every running turn. */
  get turns(): readonly Turn[] {
    return [...this.#turns.values()]
  }

  /** A conversation with its live turn and its queue. */
  state(conversation: Conversation): ConversationState {
    const turn = this.#turns.get(conversation.id)
    const { queue } = this.#deps
    const processes = this.#deps.processes?.(conversation.id)
    const resumesAt = turn ? undefined : queue.resumable(conversation.id)?.at
    return {
      conversation: structuredClone(conversation),
      ...(turn && !turn.leaving && { live: turn.live }),
      ...(resumesAt !== undefined && { resumesAt }),
      waiting: queue.waiting(conversation.id).length,
      queuePaused: queue.paused(conversation.id),
      ...(processes && { processes }),
    }
  }

  /** Starts a turn for a message the queue holds durably. */
  start(message: RunMessage): Turn {
    const { conversations, host, queue } = this.#deps
    const { conversationId, run, input, by, resumed } = message
    const before = conversations.get(conversationId)
    const { adapter, harness, model, permissionMode, effort, thinking, fast, actsAs } = this.#options(input, before)
    const startedAt = Date.now()
    const turn = this.adopt({
      message,
      startedAt,
      attempt: resumed?.attempt ?? 1,
      boots: 0,
      provider: adapter.id,
      harness,
      model,
      permissionMode,
      parked: [],
      ...(resumed?.state !== undefined && { state: resumed.state }),
      ...(resumed?.unheard && { unheard: [...resumed.unheard] }),
      ...(resumed?.round && { round: resumed.round }),
      ...(effort !== undefined && { effort }),
      ...(thinking !== undefined && { thinking }),
      ...(fast !== undefined && { fast }),
    })
    this.#deps.tiers?.begin(turn, before)
    for (const words of resumed?.unheard ?? []) turn.words.put(words)
    if (resumed)
      turn.log.push({ kind: 'resumed', reason: 'outage', attempt: resumed.attempt, resumedFrom: resumed.from })
    void conversations
      .update(conversationId, {
        provider: adapter.id,
        harness,
        model,
        permissionMode,
        effort,
        thinking,
        fast,
        actsAs,
        ...(input.account !== undefined && { account: { provider: adapter.id, id: input.account } }),
        lastRun: run,
        lastEnd: undefined,
        failure: undefined,
        lastBy: by,
        updatedAt: startedAt,
        archivedAt: undefined,
      })
      .catch(ignored('readers see it at once, and the run has an entry of its own'))
    if (before.lastRun && before.lastRun !== run) this.#expire(before.lastRun)
    const waiting = queue.waiting(conversationId)
    if (waiting.length) turn.log.push({ kind: 'queue', messages: shownMessages(waiting), paused: false })
    void this.drive(turn, resumed && { reason: 'outage' })
    this.arrivals.settle(run, turn)
    host.log.info('a turn started', { run, conversation: conversationId })
    return turn
  }

  /** A provider or model can have disappeared since the message was accepted; then the turn reports it. */
  #options(input: TurnInput, before: Conversation): TurnOptions {
    const { providers } = this.#deps
    try {
      return optionsOf(input, before, providers)
    } catch {
      return optionsOf({}, undefined, providers)
    }
  }

  /** Registers a turn, new or found after a restart, as its conversation's live one. */
  adopt(fields: EntryFields, past?: { readonly frames: readonly Frame[]; readonly lines: number }): Turn {
    const turn = new Turn(this.#deps.host, this.#hooks, fields, past)
    this.#turns.set(turn.conversationId, turn)
    return turn
  }

  /** Runs a turn to its end. */
  async drive(turn: Turn, resume?: Resume): Promise<void> {
    try {
      await turn.begun
      if (!turn.stopping) await this.#work(turn, resume)
    } catch (error) {
      if (!turn.frozen && !turn.signal.aborted) this.#fail(turn, error)
    }
    if (!turn.frozen) await this.finish(turn)
  }

  async #work(turn: Turn, resume: Resume | undefined): Promise<void> {
    const { patienceMs = PATIENCE_MS } = this.#deps
    const late = timeoutAfter(turn.signal, patienceMs)
    try {
      const prepared = await Promise.race([this.#prepare(turn), late.passed])
      turn.prepared()
      await this.#deps.tiers?.route(turn)
      for (let why = resume; prepared && !turn.signal.aborted;) {
        await applySwitch(turn)
        if (turn.frozen || turn.signal.aborted) return
        if (await this.#run(turn, prepared, why)) why = { reason: 'switched' }
        else if (await this.#deps.rules?.anotherRound(turn)) why = undefined
        else return
      }
    } finally {
      turn.adapterDone()
      late.over()
    }
  }

  async #prepare(turn: Turn): Promise<PreparedTurn> {
    const { conversations, providers, transcripts, environment } = this.#deps
    const conversation = conversations.get(turn.conversationId)
    await providers.refresh(turn.message.input.agent ?? conversation.provider)
    optionsOf(turn.message.input, conversation, providers)
    turn.index = await transcripts.count(turn.conversationId)
    return environment.prepare(turn, conversation)
  }

  /** Runs the adapter of the turn's provider choice; returns whether the turn moves to another one. */
  async #run(turn: Turn, prepared: PreparedTurn, resume: Resume | undefined): Promise<boolean> {
    const { providers, resumes, environment, patienceMs = PATIENCE_MS, holdMs = HOLD_MS } = this.#deps
    const { provider, harness } = turn.entry.fields
    await providers.refresh(provider)
    const adapter = providers.get(provider)
    const adapterRun = new AdapterRun(turn, { asks: adapter.abilities(harness).state, holdMs })
    const late = timeoutAfter(adapterRun.signal, patienceMs)
    const io = environment.io(turn, prepared, adapterRun)
    const request = await requestOf(this.#deps, turn, prepared, resume)
    turn.adapterRun = adapterRun
    // A move was requested during the preparation.
    if (turn.entry.fields.moving) adapterRun.move()
    const admitted = (await this.#deps.admit?.(turn)) ?? { ok: true }
    if (!admitted.ok) {
      turn.log.push({ kind: 'error', code: 'rate_limit', message: admitted.message })
      return false
    }
    if (turn.frozen || adapterRun.signal.aborted) return adapterRun.left
    const frames = adapter.run(request, io)[Symbol.asyncIterator]()
    const consume = async () => {
      for (;;) {
        const { value, done } = await frames.next()
        if (done || adapterRun.over || turn.leaving) return
        if (value.kind === 'done') continue
        if (await this.#deps.tiers?.replaces(turn, value)) return adapterRun.cut()
        providers.heard(adapter.id, value, this.#deps.conversations.find(turn.conversationId)?.account)
        turn.log.push((await resumes?.told(turn, value)) ?? value)
        adapterRun.rest()
        // What was used counts even if the daemon is killed right after this.
        await (value.kind === 'usage' ? turn.log.settled() : turn.log.room())
      }
    }
    try {
      await Promise.race([consume().catch(error => (adapterRun.left ? undefined : Promise.reject(error))), late.passed])
    } finally {
      void Promise.resolve(frames.return?.()).catch(ignored('the failure of the run counts'))
      await Promise.race([io.idle(), late.passed])
      turn.adapterRun = undefined
      adapterRun.end()
      late.over()
    }
    return adapterRun.left
  }

  #fail(turn: Turn, cause: unknown): void {
    // A full disk is the person's to mend.
    const error = writeFailure(cause)
    const known = (error instanceof Refusal && error.reason !== 'failed') || error instanceof GitFailure
    if (!known)
      this.#deps.host.log.error('a turn failed because of a bug', {
        run: turn.run,
        error: error instanceof Error ? error.stack : String(error),
      })
    turn.log.push({
      kind: 'error',
      message: known ? error.message : 'the turn failed unexpectedly; the log of the sandbox says why',
    })
  }

  /** Ends a turn: closes what is open, writes the record and the frame `done`, and starts the next message. */
  async finish(turn: Turn, { next = true } = {}): Promise<void> {
    const { decisions, host, conversations } = this.#deps
    const { conversationId, run } = turn
    for (const pause of [...ENDING_RETRIES, undefined]) {
      try {
        const end = await decisions.with(conversationId, () => this.#settle(turn, next))
        if (!end) return
        this.#deps.tell?.(turn, end)
        const branch = conversations.find(conversationId)?.branch
        const { report, failure, costUsd } = turn.record
        host.emit('turn.settled', {
          conversationId,
          run,
          end,
          costUsd,
          ...(end === 'failed' && { failure: failure?.message ?? 'the turn failed' }),
          ...(report !== undefined && { report: report.slice(0, REPORT) }),
          ...(branch && { branch }),
          ...(turn.taken && { taken: true }),
        })
        break
      } catch (error) {
        const why = isFull(error) ? NO_ROOM : UNWRITTEN
        if (why === NO_ROOM || pause === undefined)
          await host.journal.interrupt(framesOf(run), [{ event: 'error', data: why }])
        host.log.error('ending a turn failed', {
          run,
          again: pause !== undefined,
          error: error instanceof Error ? error.stack : String(error),
        })
        if (pause === undefined || this.#closing) {
          this.#giveUp(turn, why)
          break
        }
        await new Promise(resolve => setTimeout(resolve, pause))
      }
    }
    turn.close()
  }

  /** Its entry stays, so the next start of the daemon ends it. */
  #giveUp(turn: Turn, why: RefusalBody): void {
    const { conversations } = this.#deps
    this.#givenUp.set(turn.run, why)
    if (this.#turns.get(turn.conversationId) === turn) this.#turns.delete(turn.conversationId)
    void conversations
      .update(turn.conversationId, { lastEnd: 'failed', failure: why.message })
      .catch(ignored('the next start of the daemon ends it'))
  }

  async #settle(turn: Turn, goesOn: boolean): Promise<RunEnd | undefined> {
    if (turn.frozen) return undefined
    turn.settle()
    const { conversations, queue, transcripts, providers, environment, host } = this.#deps
    const { conversationId, run, record, entry, log } = turn
    const end = record.done ?? entry.fields.ending ?? turn.end
    if (!record.done) {
      if (log.broken)
        log.push({ kind: 'error', message: 'the log of this turn could not be written: its disk is full or failing' })
      closeRun(turn, end)
    }
    await writtenDown(turn)
    await entry.change({ ending: end })
    failpoint('agent.turn.ending')
    if (turn.byOutsiders) await conversations.update(conversationId, { landsAlone: undefined, copyApart: true })
    if (turn.heardOthers) await conversations.update(conversationId, { heardOthers: true })
    if (turn.byTokens) await conversations.update(conversationId, { heardTokens: true })
    const conversation = conversations.find(conversationId)
    if (conversation) await environment.settle(turn, conversation)
    failpoint('agent.turn.taken')
    if (end === 'completed' && !record.done) await this.#deps.land?.(turn)
    await transcripts.add(conversationId, run, record.rows, !turn.byOutsiders)
    failpoint('agent.turn.recorded')
    await this.#deps.keep?.(turn)
    await this.#deps.bill?.(turn, end)
    failpoint('agent.turn.billed')
    if (end === 'completed') providers.answered(entry.fields.provider)
    await account(conversations, turn, end)
    failpoint('agent.turn.counted')
    const plans = turn.leave().includes('plan-resume') && end === 'failed'
    const waiting = queue.waiting(conversationId)
    const [head] = end === 'completed' && goesOn ? waiting : []
    const unaffordable = head && (await this.#deps.unaffordable?.(head))
    const paused = (end !== 'completed' || turn.stopping || unaffordable !== undefined) && waiting.length > 0
    if (!record.done) {
      const shown = shownMessages(waiting).map((one, at) => (unaffordable && at === 0 ? { ...one, why: BUDGET } : one))
      if (unaffordable) log.push({ kind: 'notice', level: 'warning', text: unaffordable, source: 'usage' })
      if (paused) log.push({ kind: 'queue', messages: shown, paused })
      log.push({ kind: 'done', reason: end })
    }
    await writtenDown(turn)
    failpoint('agent.turn.done')
    await queue.ended(conversationId, run, {
      paused,
      ...(plans && { resumable: resumableOf(turn, Date.now()) }),
      ...(unaffordable !== undefined && { unaffordable: true }),
    })
    await entry.remove()
    failpoint('agent.turn.removed')
    if (turn.stopping) await queue.pause(conversationId)
    this.#turns.delete(conversationId)
    const follows =
      goesOn
      && end === 'completed'
      && !turn.stopping
      && unaffordable === undefined
      && !this.#closing
      && conversations.find(conversationId)
    const next = follows ? queue.take(conversationId) : undefined
    if (next) this.start(next)
    this.#deps.resumes?.settled(turn, end)
    host.changed(conversationId)
    await this.#closeFrames(run, end, next?.run)
    return end
  }

  /**
   * Ends the stream of a conversation's newest run, if the run is over: a killed daemon may have left it open. Refuses
   * while the end of the run cannot be written.
   */
  async endStream({ id, lastEnd = 'interrupted' }: Conversation, run: string): Promise<void> {
    const { host, queue } = this.#deps
    await this.#closings.get(run)
    const unwritten = this.#givenUp.get(run)
    if (unwritten) throw Refusal.parse(unwritten)
    if (this.live(id)?.run === run || queue.message(run)) return
    const stat = await host.journal.stat(framesOf(run))
    if (!stat || stat.closed) return
    await this.#closeFrames(run, lastEnd)
    if (!(await host.journal.stat(framesOf(run)))?.closed) throw Refusal.parse(NO_ROOM)
  }

  /** Ends the stream of a run's frames. */
  #closeFrames(run: string, reason: RunEnd, next?: string): Promise<void> {
    const closing = this.#closings.get(run) ?? this.#close(run, reason, next).finally(() => this.#closings.delete(run))
    this.#closings.set(run, closing)
    return closing
  }

  async #close(run: string, reason: RunEnd, next?: string): Promise<void> {
    await this.#deps.host.journal
      .close(framesOf(run), [
        { event: 'message', data: { kind: 'end', ...(next && { next }) } },
        { event: 'done', data: { run, reason } },
      ])
      .catch(error => this.#deps.host.log.error('closing the frames of a run failed', { run, error: String(error) }))
  }

  /** Stops a conversation's turn, when it has fully ended and no other has started; whether there was one. */
  async stop(conversationId: string): Promise<boolean> {
    const turn = this.#turns.get(conversationId)
    if (!turn) return false
    await turn.stop()
    await turn.ended
    return true
  }

  /** Stops the running turn and removes the conversation from the board, with its queue. */
  async discard(conversationId: string, erase: () => Promise<void>): Promise<void> {
    const { decisions } = this.#deps
    for (let gone = false; !gone;) {
      await this.stop(conversationId)
      gone = await decisions.with(conversationId, async () => {
        // A message may have started a turn since the stop: stop that too.
        if (this.#turns.has(conversationId)) return false
        await erase()
        return true
      })
    }
  }

  /** Freezes every live turn, so that the next start of the daemon continues it. */
  async close(): Promise<void> {
    this.#closing = true
    await Promise.all([...this.#turns.values()].map(turn => (turn.settling ? turn.ended : turn.freeze())))
  }

  /** Deletes the frames of an older run after a delay, because watchers may still read them. */
  #expire(run: string): void {
    const { host } = this.#deps
    const timer = setTimeout(
      () => void host.journal.remove(framesOf(run)).catch(ignored('frames of an older run only take space')),
      FRAMES_KEPT_MS,
    )
    timer.unref()
    host.signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
  }
}
