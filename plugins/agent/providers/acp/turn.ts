import type { ContentBlock, McpServer } from '@agentclientprotocol/sdk'
import { withheldBy } from '../../../../sdk/node/access/powers.js'
import {
  mayWrite,
  roundMark,
  type SharedProgram,
  type TreeCommand,
  type TurnFailure,
  type TurnIo,
  type TurnRequest,
} from '../adapter.js'
import type { Frame, PermissionMode, ProviderId, Unenforced } from '../../turn/frames/frames.js'
import { failed } from '../../tools/tool.js'
import { TOOLS_PATH, type ToolServers } from '../../tool-server/tool-servers.js'
import { isServed, toolServerOf } from '../../tool-server/served-tools.js'
import { TurnClient } from './client.js'
import type { StepAdmitted } from '../../spending/admission.js'
import { StepBudget } from './step-budget.js'
import { Failed, failureOf, stoppedBy, unknownModel } from './failures.js'
import { hasOwnFiles, isKnown, modeNamesOf, startsTools } from './known-programs.js'
import type { PromptUsage } from './answers.js'
import { CannotShare, Crashed, Displaced } from './crashed.js'
import type { PeerSession } from './peer-session.js'
import type { Peers, PeerUser } from './peers.js'
import { watchRefusals } from './refusal-watch.js'
import { absence, located, type AgentProgram } from './program.js'
import { approval, opening, planned } from './prompt.js'
import { ignored } from '../../../../sdk/index.js'

/** The entry of the model list that leaves the choice to the program. */
const OWN_MODEL = 'default'
/** Runs turns of a provider in its agent program. */
export type AcpRun = (
  provider: ProviderId,
  program: AgentProgram,
  request: TurnRequest,
  io: TurnIo,
) => AsyncIterable<Frame>

/**
 * Runs turns in agent programs, which `peers` keeps for the next turn.
 *
 * @param admit Asks the budgets between the steps of a turn; left out: there are none.
 */
export const acpOn = (
  peers: Peers,
  servers: ToolServers,
  admit?: (request: TurnRequest) => Promise<StepAdmitted>,
): AcpRun =>
  async function* (provider, program, request, io) {
    const path = await located(program)
    if (path === undefined) return yield { kind: 'error', code: 'harness-missing', message: absence(program) }
    const {
      command: [, ...args],
      env,
      needs,
      home,
    } = program
    const started = {
      program: path,
      args,
      ...(env && { env }),
      ...(needs && { needs }),
      ...(home !== undefined && { home }),
    }
    const start = (readOnly: boolean) => io.walled({ ...started, readOnly })
    const onlyReads = !program.asks && !mayWrite(request)
    const planning = !program.asks && request.permissionMode === 'plan'
    const budget = new StepBudget(admit && (() => admit(request)))
    const mayShare =
      !program.once && !onlyReads && !planning && request.subagent === undefined && peers.shares(provider)
    const shared = mayShare ? await io.shared(started) : undefined
    const own = () => start(onlyReads || planning)
    const first = shared ? undefined : await own()
    const client = new TurnClient(io, shared?.tree ?? first!, budget)
    const places = { shared, own: async () => first ?? own(), writable: () => start(onlyReads) }
    const turn = new VendorTurn(provider, program, request, io, client, peers, servers, places)
    const work = turn.run().finally(() => client.frames.end())
    work.catch(ignored('the caller that awaits it gets the failure'))
    yield* client.frames
    await work
  }

/** The processes in which a turn may run. */
interface TurnPlaces {
  /** Left out: it may share none. */
  readonly shared: SharedProgram | undefined
  readonly own: () => Promise<TreeCommand>
  /** Its own after a plan was approved. */
  readonly writable: () => Promise<TreeCommand>
}

class VendorTurn {
  readonly #provider: ProviderId
  readonly #program: AgentProgram
  readonly #request: TurnRequest
  readonly #io: TurnIo
  readonly #client: TurnClient
  readonly #peers: Peers
  readonly #servers: ToolServers
  readonly #places: TurnPlaces
  /** The session that serves the turn now. */
  #session: PeerSession | undefined
  #usage: PromptUsage | undefined
  /** The cost of the session before this turn, if known. */
  #costBefore: number | undefined
  #called = 0

  constructor(
    provider: ProviderId,
    program: AgentProgram,
    request: TurnRequest,
    io: TurnIo,
    client: TurnClient,
    peers: Peers,
    servers: ToolServers,
    places: TurnPlaces,
  ) {
    this.#places = places
    this.#provider = provider
    this.#program = program
    this.#request = request
    this.#io = io
    this.#client = client
    this.#peers = peers
    this.#servers = servers
  }

  /** Runs the whole turn; its frames go to the client's queue. */
  async run(): Promise<void> {
    const { frames, updates } = this.#client
    const startedAt = performance.now()
    let failure: TurnFailure | undefined
    let again = true
    try {
      await this.#run()
    } catch (error) {
      failure = failureOf(this.#program.label, error)
      again = failure !== undefined && !(error instanceof Crashed)
      if (!failure && !this.#io.signal.aborted) throw error
    } finally {
      await this.#client.close()
      // A subagent is never continued.
      const kept = again && !this.#program.once && this.#request.subagent === undefined
      if (this.#session) await this.#peers.release(this.#session, kept)
    }
    const costUsd = this.#client.budget.untold()
    frames.push(...updates.close(), {
      kind: 'usage',
      numTurns: 1,
      durationMs: Math.round(performance.now() - startedAt),
      ...(costUsd !== undefined && { costUsd }),
      ...this.#usage,
    })
    if (failure && !this.#io.signal.aborted) frames.push({ kind: 'error', ...failure })
  }

  /** Runs the turn in a process that it may share, or goes on in one of its own when that one cannot serve it. */
  async #run(): Promise<void> {
    const { sessionId } = this.#request
    const { shared, own } = this.#places
    let resumed: string | undefined
    if (shared) {
      try {
        const session = await this.#peers.join(this.#user, shared)
        return await this.#served(session, sessionId)
      } catch (error) {
        resumed = this.#goesOn(error)
      }
      await this.#left()
    }
    const tree = await own()
    if (shared) await this.#client.move(tree)
    const before = resumed ?? sessionId
    await this.#served(await this.#peers.take(this.#user, tree, before), before, resumed !== undefined)
  }

  /** The session to load in another process; undefined: the turn has not begun. Throws when the turn is over. */
  #goesOn(error: unknown): string | undefined {
    if (this.#io.signal.aborted) throw error
    if (error instanceof CannotShare) {
      this.#peers.separate(this.#provider)
      return undefined
    }
    const { sessionId, loadsSessions = false } = this.#session ?? {}
    if (!(error instanceof Displaced) || sessionId === undefined || !loadsSessions) throw error
    const { frames, updates } = this.#client
    const why = 'was ended because the turn of another conversation did not stop'
    frames.push(...updates.close(), notice(`${this.#program.label} ${why}; this turn goes on in a process of its own`))
    return sessionId
  }

  async #left(): Promise<void> {
    const session = this.#session
    this.#session = undefined
    if (session) await this.#peers.release(session, false)
  }

  async #served(session: PeerSession, before: string | undefined, resumed = false): Promise<void> {
    const { updates, died } = this.#client
    this.#session = session
    if (!resumed) this.#costBefore = session.costUsd
    await Promise.race([this.#work(session, before, resumed), died])
    if (updates.costUsd !== undefined) session.costUsd = updates.costUsd
  }

  get #user(): PeerUser {
    const { conversationId, subagent } = this.#request
    const ownFiles = hasOwnFiles(this.#program.command[0])
    const user = { conversationId, provider: this.#provider, signal: this.#io.signal, waits: this.#waits, ownFiles }
    return { ...user, ...(subagent && { subagent: subagent.id }) }
  }

  /** The cost of the turn so far; undefined: unknown. */
  get #cost(): number | undefined {
    const { costUsd } = this.#client.updates
    if (costUsd === undefined || this.#costBefore === undefined) return undefined
    return Math.max(0, costUsd - this.#costBefore)
  }

  async #work(peer: PeerSession, before: string | undefined, resumed: boolean): Promise<void> {
    const { permissionMode } = this.#request
    const leave = peer.serve(this.#client)
    try {
      const session = await this.#open(peer, before, permissionMode)
      if (resumed && !session) throw new Crashed('was ended for another conversation, and cannot load this one')
      // The previous cost of a session that an earlier process opened is unknown.
      if (!session) this.#costBefore ??= 0
      this.#client.budget.spent = () => this.#cost
      const request = resumed ? { ...this.#request, resume: { reason: 'restart' as const } } : this.#request
      const words = await opening(request, { session, images: peer.takesImages }, this.#client.paths)
      this.#client.tells(words)
      if (permissionMode === 'plan') await this.#planned(peer, words)
      else await this.#say(peer, words)
    } finally {
      leave()
      peer.tools()?.use(undefined)
    }
  }

  /** Opens the session and applies the turn's options; returns whether the program loaded the previous one. */
  async #open(peer: PeerSession, before: string | undefined, mode: PermissionMode): Promise<boolean> {
    const { model, harness, effort, allowedTools, powers } = this.#request
    const narrow = allowedTools !== undefined || (powers !== undefined && withheldBy(powers, '') !== undefined)
    const { frames, tree } = this.#client
    const { label } = this.#program
    const tools = await this.#tools(peer)
    const remembers = await peer.open(tree.seen.cwd, before, tools, this.#io.signal, this.#waits)
    if (before !== undefined && !remembers && peer.unloaded !== undefined)
      frames.push(notice(`${label} could not load its session, so it gets the record: ${peer.unloaded}`))
    // One of a routed provider finds its model in a variable.
    const isOwn = model === this.#provider || model === OWN_MODEL || this.#program.asks || this.#program.once
    const named = isOwn ? {} : { model }
    const modeName = modeNamesOf(this.#program.command[0])[mode]
    const wanted = { mode, ...(modeName && { modeName }), ...named, ...(effort !== undefined && { effort }) }
    const { missing, models } = await peer.configure(wanted, this.#io.signal)
    if (models && models.length > 0) throw unknownModel(label, model, models)
    const unenforced = [...new Set([...missing, ...this.#loose(mode, narrow, missing)])]
    frames.push(
      { kind: 'session', sessionId: peer.sessionId! },
      {
        kind: 'init',
        model: peer.model ?? model,
        provider: this.#provider,
        harness,
        ...(unenforced.length > 0 && { unenforced }),
      },
    )
    this.#client.listen(peer.sessionId!)
    return remembers
  }

  /** Says what the turn waits for. */
  readonly #waits = (how: string): void =>
    this.#client.frames.push(notice(`${this.#program.label} is getting ready; it ${how}; stop the turn to give up`))

  /** The tool servers of a session: that of the sandbox, with the tools that programs lack. */
  async #tools(peer: PeerSession): Promise<McpServer[]> {
    if (this.#program.asks) return []
    const session = peer.tools(() => this.#servers.open())
    session.use({
      list: async () => (await this.#io.offered()).filter(({ name }) => isServed(name)),
      call: async (name, input) => {
        const { frames, updates } = this.#client
        frames.push(...updates.close())
        // Frames from before the call are written first.
        await frames.flushed()
        const { budget } = this.#client
        await budget.step()
        if (budget.failure) return failed(budget.failure.message)
        return this.#io.tool(name, input, `${roundMark(this.#request)}sandbox-tool-${++this.#called}`)
      },
    })
    const { shared } = this.#places
    const inShared = shared && this.#client.tree === shared.tree
    const url = (await (inShared ? shared : this.#io).expose(this.#servers.server)) + TOOLS_PATH
    const overHttp = peer.takesHttpServers && !startsTools(this.#program.command[0])
    return [toolServerOf(url, session.token, overHttp)]
  }

  /**
   * Reports restrictions that the program does not enforce. The wall enforces plans and read-only turns; which tools a
   * program uses beyond that is its choice.
   */
  #loose(mode: PermissionMode, narrow: boolean, missing: readonly Unenforced[]) {
    const { enforced } = this.#client.tree
    const asks = this.#program.asks || isKnown(this.#program.command[0])
    return [
      ...(mode === 'bypassPermissions' || (mode === 'plan' && enforced) || asks ? [] : (['mode'] as const)),
      ...(narrow && !this.#program.asks ? (['tools'] as const) : []),
    ].filter(what => !missing.includes(what))
  }

  /** Two rounds: the plan, and after approval its execution, in a process that may write. */
  async #planned(peer: PeerSession, words: ContentBlock[]): Promise<void> {
    const { updates, frames } = this.#client
    this.#client.planning = true
    await this.#say(peer, words)
    const text = updates.takeSaid().trim()
    frames.push(...updates.close())
    if (!text || !this.#request.attended || this.#io.signal.aborted) return
    await frames.flushed()
    const reply = await this.#io.raise({ kind: 'plan', text })
    this.#client.planning = false
    if (this.#io.signal.aborted) return
    if (reply?.kind !== 'plan' || !reply.approve) {
      const feedback =
        (reply?.kind === 'plan' && reply.feedback) || 'The plan was not approved, so nothing more is done.'
      return frames.push({ kind: 'delta', text: feedback }, { kind: 'text_end' })
    }
    this.#io.mode('bypassPermissions')
    if (this.#program.asks) {
      await peer.configure({ mode: 'bypassPermissions' }, this.#io.signal)
      return this.#say(peer, approval())
    }
    const session = peer.sessionId
    const writer = await this.#peers.take(this.#user, await this.#places.writable(), session)
    this.#session = writer
    const leave = writer.serve(this.#client)
    try {
      const remembers = await this.#open(writer, session, 'bypassPermissions')
      await this.#say(writer, remembers ? approval() : [...words, ...planned(text), ...approval()])
    } finally {
      leave()
      writer.tools()?.use(undefined)
    }
  }

  async #say(peer: PeerSession, words: ContentBlock[]): Promise<void> {
    const { conversationId, run } = this.#request
    const { label } = this.#program
    const { budget, updates } = this.#client
    const refused = watchRefusals(this.#program, peer, () => updates.count)
    const ended = () => budget.failure ?? refused.failure
    try {
      const { reason, usage } = await peer.prompt(
        words,
        { 'sandbox/conversation': conversationId, 'sandbox/run': run },
        AbortSignal.any([this.#io.signal, refused.signal, budget.signal]),
      )
      if (usage) this.#usage = added(this.#usage, usage)
      const failure = ended()
      if (failure) throw new Failed(failure)
      if (reason === 'end_turn' || this.#io.signal.aborted) return
      throw stoppedBy(label, reason)
    } catch (error) {
      const failure = ended()
      throw failure && !(error instanceof Failed) ? new Failed(failure) : error
    } finally {
      refused.over()
    }
  }
}

const notice = (text: string): Frame => ({ kind: 'notice', level: 'info', text, source: 'provider' })

const added = (one: PromptUsage | undefined, other: PromptUsage): PromptUsage =>
  one
    ? {
        inputTokens: one.inputTokens + other.inputTokens,
        outputTokens: one.outputTokens + other.outputTokens,
        cacheReadTokens: one.cacheReadTokens + other.cacheReadTokens,
        cacheCreationTokens: one.cacheCreationTokens + other.cacheCreationTokens,
      }
    : other
