import type { Log } from '../../../sdk/index.js'
import { Refusal, refuse, ignored } from '../../../sdk/index.js'
import type {
  SubagentLimits,
  SubagentOutcome,
  SubagentSpec,
  ProviderAdapter,
  TurnRequest,
} from '../providers/adapter.js'
import type { Frame, SubagentStatus, SubagentUpdateFrame } from '../turn/frames/frames.js'
import { endSubagent, type SubagentEnd } from './end.js'
import type { AdmitStep } from '../spending/admission.js'
import { underSubagent } from './frames.js'
import { writeFailure } from '../../../sdk/node/files/disk.js'
import { timeoutAfter } from '../turn/timeout-after.js'
import type { Providers } from '../providers/providers.js'
import type { JoinedSubagent } from '../tools/tool.js'
import { requestedBy } from '../personas/worn.js'
import type { Turn } from '../turn/turn.js'
import type { Settings } from '../../settings/contract.js'
import type { PreparedTurn, ToolCaller, WorkingIo } from '../turn/environment/environment.js'

/** The limits in a sandbox without settings. */
export const DEFAULT_SUBAGENT_LIMITS: SubagentLimits = { atOnce: 20, perTurn: 200, depth: 3 }

/** The limits that settings give. */
export const subagentLimitsOf = ({
  subagentsAtOnce,
  subagentsPerTurn,
  subagentDepth,
}: Partial<Settings> = {}): SubagentLimits => ({
  atOnce: subagentsAtOnce ?? DEFAULT_SUBAGENT_LIMITS.atOnce,
  perTurn: subagentsPerTurn ?? DEFAULT_SUBAGENT_LIMITS.perTurn,
  depth: subagentDepth ?? DEFAULT_SUBAGENT_LIMITS.depth,
})

/** The providers that subagents run on, and the log for their bugs. */
export interface SubagentDeps {
  readonly providers: Pick<Providers, 'get' | 'serving' | 'heard'>
  readonly log: Pick<Log, 'error'>
  /** Asks the budgets before a subagent's step; left out: there are none. */
  readonly admit?: AdmitStep
}

interface SubagentsDeps extends SubagentDeps {
  readonly turn: Turn
  readonly prepared: PreparedTurn
  readonly io: (worker: ToolCaller) => WorkingIo
}

interface Working {
  readonly by?: string
  readonly stop: AbortController
  readonly ended: Promise<SubagentOutcome>
}

const PATIENCE_MS = 5_000
const MOST_SUMMARY = 4_000

/** The subagents of one turn: starts them within its limits, runs them like turns, and ends them with their starter. */
export class Subagents {
  readonly #deps: SubagentsDeps
  readonly #working = new Map<string, Working>()
  readonly #joined = new Set<string>()

  constructor(deps: SubagentsDeps) {
    this.#deps = deps
  }

  /** Runs a subagent for a call; in the background returns when it has started. */
  async delegate(spec: SubagentSpec, id: string, by: ToolCaller): Promise<SubagentOutcome> {
    const { turn } = this.#deps
    const known = this.#working.get(id)?.ended ?? this.#past(id)
    if (known) return known
    const adapter = this.#adapter(spec)
    const refused = typeof adapter === 'string' ? adapter : this.#beyond(by)
    if (typeof adapter === 'string' || refused !== undefined) return { status: 'failed', summary: refused! }
    const { description, agentType, background } = spec
    const model = spec.model ?? turn.entry.fields.model
    turn.log.push({
      kind: 'subagent',
      id,
      subagentKind: 'subagent',
      description: description.slice(0, 200).toWellFormed(),
      model,
      ...(agentType !== undefined && { agentType }),
      ...(background && { background }),
    })
    turn.record.helpers.ask(id, spec.prompt)
    const stop = new AbortController()
    const worker: ToolCaller = {
      signal: AbortSignal.any([by.signal, stop.signal]),
      mode: by.mode,
      depth: by.depth + 1,
      helper: id,
    }
    const ended = this.#run(adapter, this.#request(spec, adapter, model, worker), worker, stop)
    this.#working.set(id, { stop, ended, ...(by.helper !== undefined && { by: by.helper }) })
    return background ? { status: 'running', summary: `subagent ${id} is at work; Join waits for it` } : ended
  }

  /** Waits for subagents in the background: those named, or all whose result was not returned yet. */
  async join(by: ToolCaller, ids?: readonly string[], timeoutMs?: number): Promise<JoinedSubagent[]> {
    const mine = this.#deps.turn.record.helpers.all
      .filter(({ id, background }) => background && this.#starter(id) === by.helper)
      .map(({ id }) => id)
    const unknown = ids?.find(id => !mine.includes(id))
    if (unknown !== undefined) {
      const names = mine.length
        ? `one of ${mine.slice(-20).join(', ')}`
        : 'none, as no subagent works in the background'
      refuse(
        'unprocessable',
        `Join takes ids of subagents you started in the background: expected ${names}, `
          + `found ${JSON.stringify(unknown.slice(0, 80))}`,
      )
    }
    const wanted = ids ?? mine.filter(id => !this.#joined.has(id))
    await within(Promise.all(wanted.map(id => this.#working.get(id)?.ended)), by.signal, timeoutMs)
    return wanted.map(id => this.#standing(id))
  }

  /** Ends the running subagents of a starter; resolves when they have ended. */
  async end(by: string | undefined): Promise<void> {
    const { helpers } = this.#deps.turn.record
    const left = [...this.#working].filter(([id, working]) => working.by === by && helpers.isOpen(id))
    await Promise.all(
      left.map(([, { stop, ended }]) => {
        stop.abort()
        return ended
      }),
    )
  }

  #standing(id: string): JoinedSubagent {
    const { helpers } = this.#deps.turn.record
    const { description, ...state } = helpers.get(id)!
    if (!helpers.isOpen(id)) this.#joined.add(id)
    return { id, ...outcomeOf(state), ...(description !== undefined && { description }) }
  }

  /** How a subagent of this call ended earlier, before a restart too. */
  #past(id: string): SubagentOutcome | undefined {
    const state = this.#deps.turn.record.helpers.get(id)
    return state && outcomeOf(state)
  }

  /** The subagent that started this one; undefined: the turn's own agent. */
  #starter(id: string): string | undefined {
    return this.#deps.turn.record.helpers.above(id).at(-1)
  }

  /** The limit that one more subagent would exceed. */
  #beyond({ depth }: ToolCaller): string | undefined {
    const { turn, prepared } = this.#deps
    const limits = prepared.helpers ?? DEFAULT_SUBAGENT_LIMITS
    const { all, open } = turn.record.helpers
    if (depth >= limits.depth)
      return (
        `subagents may go ${limits.depth} deep (subagentDepth), and this agent is at depth ${depth}: do the `
        + 'work without a subagent'
      )
    if (all.length >= limits.perTurn)
      return (
        `a turn may have ${limits.perTurn} subagents (subagentsPerTurn), and this one had them: do the work `
        + 'without a subagent'
      )
    if (open.length >= limits.atOnce)
      return (
        `${limits.atOnce} subagents may be at work at once (subagentsAtOnce), and they are: wait for one with `
        + 'Join, or do the work without a subagent'
      )
    return undefined
  }

  #adapter({ model }: SubagentSpec): ProviderAdapter | string {
    const { turn, providers } = this.#deps
    const own = providers.get(turn.entry.fields.provider)
    if (model === undefined || own.models.includes(model)) return own
    return (
      providers.serving(model)
      ?? `no provider has a model ${JSON.stringify(model.slice(0, 120))}: leave model out, or take one `
        + `of ${own.models.join(', ')}`
    )
  }

  #request(
    { prompt }: SubagentSpec,
    adapter: ProviderAdapter,
    model: string,
    { depth, mode, helper: id }: ToolCaller,
  ): TurnRequest {
    const { turn, prepared } = this.#deps
    const { harness } = turn.entry.fields
    return {
      conversationId: turn.conversationId,
      run: turn.run,
      attempt: 1,
      depth,
      subagent: { id: id!, provider: adapter.id, model },
      prompt,
      words: prompt,
      attachments: [],
      mentions: [],
      harness: adapter.harnesses.includes(harness) ? harness : adapter.ownHarness,
      model,
      permissionMode: mode,
      attended: turn.message.attended,
      helpers: prepared.helpers ?? DEFAULT_SUBAGENT_LIMITS,
      ...(prepared.allowedTools && { allowedTools: prepared.allowedTools }),
      ...requestedBy(prepared),
    }
  }

  async #run(
    adapter: ProviderAdapter,
    request: TurnRequest,
    worker: ToolCaller,
    stop: AbortController,
  ): Promise<SubagentOutcome> {
    const { turn } = this.#deps
    const id = worker.helper!
    const io = this.#deps.io(worker)
    const said = new OutcomeCollector()
    const late = timeoutAfter(worker.signal, PATIENCE_MS)
    let frames: AsyncIterator<Frame> | undefined
    try {
      const admitted = (await this.#deps.admit?.(turn, undefined, request.subagent)) ?? { ok: true }
      if (!admitted.ok) refuse('too-many', admitted.message)
      frames = adapter.run(request, io)[Symbol.asyncIterator]()
      await Promise.race([this.#listen(adapter, request, frames, said), late.passed])
    } catch (error) {
      said.failure ??= worker.signal.aborted ? undefined : this.#sentence(error)
    }
    const end = said.end(worker.signal.aborted)
    // Everything that it started ends with it.
    stop.abort()
    void Promise.resolve(frames?.return?.()).catch(ignored('its result is known'))
    await Promise.race([io.idle(), late.passed])
    late.over()
    // The subagents of a frozen turn are left to the next start of the daemon.
    if (!turn.frozen && turn.record.helpers.isOpen(id)) {
      endSubagent(turn, id, end)
    }
    return outcomeOf(turn.record.helpers.get(id) ?? end)
  }

  async #listen(
    adapter: ProviderAdapter,
    { subagent, harness, model }: TurnRequest,
    frames: AsyncIterator<Frame>,
    said: OutcomeCollector,
  ): Promise<void> {
    const { turn, providers } = this.#deps
    const { id } = subagent!
    for (;;) {
      const { value, done } = await frames.next()
      if (done || !turn.record.helpers.isOpen(id)) return
      said.add(value)
      if (value.kind === 'error') providers.heard(adapter.id, value)
      // In the log at once: what was used counts even if the daemon is killed before the subagent ends.
      if (value.kind === 'usage') {
        turn.log.push({ kind: 'subagent_update', id, tokens: said.tokens })
        turn.log.push({ harness, ...value, subagent: id, provider: adapter.id, model: said.model ?? model })
      }
      const frame = underSubagent(value, id)
      if (!frame) continue
      turn.log.push(frame)
      if (value.kind === 'tool_call') turn.log.push(moved(turn, id, value.name))
      await turn.log.room()
    }
  }

  #sentence(cause: unknown): string {
    const error = writeFailure(cause)
    if (error instanceof Refusal && error.reason !== 'failed') return error.message
    this.#deps.log.error('a subagent failed because of a bug', {
      run: this.#deps.turn.run,
      error: error instanceof Error ? error.stack : String(error),
    })
    return 'the subagent failed unexpectedly; the log of the sandbox says why'
  }
}

/** The frame that tells of one more call of a subagent. */
export const moved = (turn: Turn, id: string, lastTool: string): SubagentUpdateFrame => ({
  kind: 'subagent_update',
  id,
  toolUses: (turn.record.helpers.get(id)?.toolUses ?? 0) + 1,
  lastTool,
})

const outcomeOf = ({
  status,
  summary,
  error,
}: {
  readonly status: SubagentStatus
  readonly summary?: string
  readonly error?: string
}): SubagentOutcome => ({ status, summary: error ?? summary ?? '' })

/** Waits for work, but not past a signal or a time. */
const within = async (work: Promise<unknown>, signal: AbortSignal, ms: number | undefined): Promise<void> => {
  const over = ms === undefined ? signal : AbortSignal.any([signal, AbortSignal.timeout(ms)])
  if (over.aborted) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const leave = () => resolve()
  over.addEventListener('abort', leave, { once: true })
  await Promise.race([work, promise])
  over.removeEventListener('abort', leave)
}

/** Collects the outcome of a subagent from its provider's frames. */
class OutcomeCollector {
  failure: string | undefined
  /** The model that ran, as its provider says. */
  model: string | undefined
  /** Tokens of all its requests. */
  tokens = 0
  #block = ''
  #last = ''

  add(frame: Frame): void {
    switch (frame.kind) {
      case 'delta':
        if (this.#block.length <= MOST_SUMMARY) this.#block = (this.#block + frame.text).trimStart()
        return
      case 'text_end':
        return this.#close()
      case 'init':
        this.model = frame.model
        return
      case 'error':
        this.failure ??= frame.message
        return
      case 'usage':
        this.tokens += (frame.inputTokens ?? 0) + (frame.outputTokens ?? 0)
    }
  }

  /** How the subagent ended, with its last block of prose for a summary. */
  end(killed: boolean): SubagentEnd {
    this.#close()
    const summary = this.#last && { summary: this.#last }
    if (this.failure !== undefined) return { status: 'failed', error: this.failure }
    return { status: killed ? 'killed' : 'completed', ...summary }
  }

  #close(): void {
    const text = this.#block.trimEnd()
    this.#block = ''
    if (text) this.#last = text.length > MOST_SUMMARY ? `${text.slice(0, MOST_SUMMARY).toWellFormed()}…` : text
  }
}
