import type {
  ContentBlock,
  CreateTerminalRequest,
  CreateTerminalResponse,
  PermissionOption,
  ReadTextFileRequest,
  ReadTextFileResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
  TerminalOutputResponse,
  WaitForTerminalExitResponse,
  WriteTextFileRequest,
} from '@agentclientprotocol/sdk'
import { Refusal, ignored } from '../../../../sdk/index.js'
import { codeOf } from '../../../../sdk/node/files/paths.js'
import type { GatedCall, SeenTree, TurnIo } from '../adapter.js'
import type { ToolContent } from '../../turn/frames/frames.js'
import { change, cut, textOf } from '../../tools/content.js'
import { readFileAt, replace } from '../../tools/tree.js'
import { AgentCalls } from './calls.js'
import { ABSENT, Declined } from './declined.js'
import { FrameQueue } from './frame-queue.js'
import { fieldsOf, lineField } from './outside.js'
import type { PeerTurn } from './peer-turn.js'
import { AcpTerminals } from './terminals.js'
import { TreePaths } from './tree-paths.js'
import { StepBudget } from './step-budget.js'
import { Updates } from './updates.js'

/** The updates that a program sends when it begins a step, or has paid for one. */
const STEPS = new Set<unknown>(['tool_call', 'usage_update'])
const MOST_TITLE = 300
const MOST_WRITE = 4 * 1024 * 1024

type Doing = Omit<GatedCall, 'id'>

/** Handles the requests and updates of a program in one turn: requests pass the gate, and all is shown as frames. */
export class TurnClient implements PeerTurn {
  readonly frames = new FrameQueue()
  readonly updates: Updates
  readonly paths: TreePaths
  /** Plan mode is on; only the person can end it. */
  planning = false
  #tree: SeenTree
  readonly budget: StepBudget
  readonly #io: TurnIo
  readonly #calls: AgentCalls
  readonly #terminals = new AcpTerminals(id => this.#ended(id))
  /** The sandbox's own calls that show a terminal. */
  readonly #shown = new Map<string, string>()
  readonly #died = Promise.withResolvers<never>()
  #sessionId: string | undefined
  /** The lines that the daemon told the model. */
  readonly #told: string[] = []
  #sequence = 0

  constructor(io: TurnIo, tree: SeenTree, budget = new StepBudget(undefined)) {
    this.#io = io
    this.budget = budget
    this.#tree = tree
    this.paths = new TreePaths(tree)
    this.#calls = new AgentCalls(
      this.paths,
      id => this.#terminals.text(id),
      ({ command, startedAt, ...ended }) => this.#tree.begun(command, startedAt)(ended),
    )
    this.updates = new Updates(this.#calls)
    this.#died.promise.catch(ignored('the caller that awaits it gets the failure'))
    budget.logged = () => this.frames.flushed()
  }

  get tree(): SeenTree {
    return this.#tree
  }

  /** Another process runs the rest of the turn, which sees the tree in its own place. */
  async move(tree: SeenTree): Promise<void> {
    this.#sessionId = undefined
    this.#tree = tree
    this.paths.show(tree)
    await this.#terminals.end()
  }

  /** Rejects when a request failed because of a bug in the daemon. */
  get died(): Promise<never> {
    return this.#died.promise
  }

  bug(error: unknown): void {
    this.#died.reject(error)
  }

  /** Handles the updates of this session from now on. */
  listen(sessionId: string): void {
    this.#sessionId = sessionId
  }

  update(params: unknown): void {
    const { sessionId, update } = fieldsOf(params)
    if (this.#sessionId === undefined || sessionId !== this.#sessionId) return
    const heard = fieldsOf(update)
    this.frames.push(...this.updates.heard(heard))
    if (heard.sessionUpdate === 'usage_update') this.#cost()
    if (heard.sessionUpdate === 'session_info_update') this.#titled(heard.title)
    if (STEPS.has(heard.sessionUpdate)) this.budget.step().catch(error => this.bug(error))
  }

  /** Takes a title for the conversation, unless the program made it from what the daemon told the model. */
  #titled(text: unknown): void {
    const title = lineField(text, MOST_TITLE)
    const words = title?.replace(/(?:…|\.{3})$/, '').trim()
    if (title && words && !this.#told.some(line => line.startsWith(words))) this.#io.title(title)
  }

  /** Notes what a prompt tells the model in addition to the person's message. */
  tells(prompt: readonly ContentBlock[]): void {
    for (const block of prompt)
      if (block.type === 'text' && block.annotations)
        this.#told.push(...block.text.split('\n').map(line => line.trim()))
  }

  /** Shows the cost that the program has added: it counts even if the daemon is killed before the turn ends. */
  #cost(): void {
    const costUsd = this.budget.untold()
    if (costUsd) this.frames.push({ kind: 'usage', costUsd, numTurns: 0 })
  }

  room(): Promise<void> | undefined {
    return this.budget.asking ?? this.frames.room()
  }

  /** Ends the commands that the program runs. */
  close(): Promise<void> {
    this.#sessionId = undefined
    this.#calls.close()
    return this.#terminals.close()
  }

  readonly permission = async ({ toolCall, options }: RequestPermissionRequest): Promise<RequestPermissionResponse> => {
    const asked = this.#calls.asked(toolCall)
    // The gate judges it when it arrives.
    if (asked === 'served') return outcomeOf(chosen(options, ONCE))
    const { gated, switchesMode, frames } = asked
    this.frames.push(...this.updates.close(), ...frames)
    const { allow, always } =
      switchesMode && this.planning ? { allow: false, always: false } : await this.#permit(gated)
    if (this.#io.signal.aborted) return { outcome: { outcome: 'cancelled' } }
    if (allow) this.#calls.grant(gated)
    const option = chosen(options, allow ? (always ? ALWAYS : ONCE) : NEVER)
    return outcomeOf(option)
  }

  readonly readFile = async ({ path, line, limit }: ReadTextFileRequest): Promise<ReadTextFileResponse> => {
    const at = this.#within(path)
    return this.#do({ name: 'Read', category: 'read', path: at }, async () => {
      const text = textOf((await readFileAt(this.tree, at)).bytes)
      if (text === undefined) throw new Declined(`${at} is binary`)
      const content = part(text, line ?? 1, limit ?? Infinity)
      return { value: { content }, content: [{ type: 'text', text: cut(content) }] }
    })
  }

  readonly writeFile = async ({ path, content }: WriteTextFileRequest): Promise<undefined> => {
    const at = this.#within(path)
    if (content.length > MOST_WRITE)
      throw new Declined(`expected a text of at most ${MOST_WRITE} characters, found ${content.length}`)
    return this.#do({ name: 'Write', category: 'edit', path: at, input: content }, async () => {
      const { before, after } = await replace(this.tree, at, () => Buffer.from(content.toWellFormed()))
      return { value: undefined, content: change(at, before, after) }
    })
  }

  readonly createTerminal = async ({
    command,
    args = [],
    env = [],
    cwd,
    outputByteLimit,
  }: CreateTerminalRequest): Promise<CreateTerminalResponse> => {
    const place = cwd ? this.#within(cwd) : undefined
    const whole = [command, ...args].join(' ')
    const doing: Doing = { name: 'Shell', category: 'execute', command: whole }
    const shows = !this.#calls.announced(doing)
    const id = this.#begin(doing, shows)
    await this.#pass({ ...doing, id }, shows)
    const [program, words] = args.length > 0 ? [command, args] : ['sh', ['-c', command]]
    const tree = await this.#io.walled({
      program,
      args: words,
      env: Object.fromEntries(env.map(({ name, value }) => [name, value])),
      ...(place && { cwd: place === '.' ? '' : place }),
      ofTurn: true,
    })
    const terminalId = this.#io.signal.aborted
      ? undefined
      : this.#terminals.start(tree, whole, outputByteLimit ?? undefined)
    if (terminalId === undefined) return this.#fail(id, shows, new Declined('too many commands are running already'))
    if (!shows) this.#calls.runs(whole)
    else {
      this.#shown.set(terminalId, id)
      this.frames.push({ kind: 'tool_call_update', id, status: 'in_progress' })
    }
    return { terminalId }
  }

  readonly terminalOutput = async ({ terminalId }: { terminalId: string }): Promise<TerminalOutputResponse> => {
    const { text, truncated, end } = this.#terminal(terminalId)
    return { output: text, truncated, ...(end && { exitStatus: end }) }
  }

  readonly waitForTerminal = async ({ terminalId }: { terminalId: string }): Promise<WaitForTerminalExitResponse> =>
    this.#terminal(terminalId).ended

  readonly killTerminal = async ({ terminalId }: { terminalId: string }): Promise<undefined> => {
    this.#terminal(terminalId)
    this.#terminals.kill(terminalId)
    return undefined
  }

  readonly releaseTerminal = async ({ terminalId }: { terminalId: string }): Promise<undefined> => {
    this.#terminal(terminalId)
    this.#terminals.release(terminalId)
    return undefined
  }

  #terminal(id: string) {
    const terminal = this.#terminals.get(id)
    if (!terminal) throw new Declined(`there is no terminal ${id.slice(0, 80)}`, ABSENT)
    return terminal
  }

  /** The end of a command is shown by the call that showed its start. */
  #ended(terminal: string): void {
    this.frames.push(...this.#calls.grown(terminal))
    const id = this.#shown.get(terminal)
    if (id === undefined) return
    const ok = this.#terminals.get(terminal)?.end?.exitCode === 0
    this.frames.push({
      kind: 'tool_call_update',
      id,
      status: ok ? 'completed' : 'failed',
      content: [{ type: 'text', text: cut(this.#terminals.text(terminal) ?? '') }],
    })
  }

  #within(path: string): string {
    const at = this.paths.within(path)
    if (at === undefined)
      throw new Declined(`expected an absolute path inside ${this.tree.seen.root}, found ${path.slice(0, 200)}`, -32602)
    return at
  }

  /** Fulfils a request of the program if the gate allows it; shows it as a call unless the program announced one. */
  async #do<T>(doing: Doing, work: () => Promise<{ value: T; content: ToolContent[] }>): Promise<T> {
    const shows = !this.#calls.announced(doing)
    const id = this.#begin(doing, shows)
    await this.#pass({ ...doing, id }, shows)
    try {
      const { value, content } = await work()
      if (shows) this.frames.push({ kind: 'tool_call_update', id, status: 'completed', content })
      return value
    } catch (error) {
      return this.#fail(id, shows, declined(error, doing.path ?? ''))
    }
  }

  #begin({ name, category, path, command }: Doing, shows: boolean): string {
    const id = `sandbox-${++this.#sequence}`
    const target = path ?? command
    if (shows) {
      this.frames.push(...this.updates.close(), {
        kind: 'tool_call',
        id,
        name,
        category,
        status: 'pending',
        ...(target !== undefined && { target: target.slice(0, 200).toWellFormed() }),
        ...(path !== undefined && { locations: [{ path }] }),
      })
    }
    return id
  }

  async #pass(gated: GatedCall, shows: boolean): Promise<void> {
    if (this.#calls.allowed(gated)) return
    const { allow, reason = 'stopped' } = await this.#permit(gated)
    if (!allow) this.#fail(gated.id, shows, new Declined(reason))
  }

  #fail(id: string, shows: boolean, error: Error): never {
    if (shows)
      this.frames.push({
        kind: 'tool_call_update',
        id,
        status: 'failed',
        content: [{ type: 'text', text: error.message }],
      })
    throw error
  }

  /** Writes earlier frames first, so that cards follow them. */
  async #permit(gated: GatedCall) {
    await this.frames.flushed()
    await this.budget.step()
    const { failure } = this.budget
    return failure ? { allow: false, always: false, reason: failure.message } : this.#io.permit(gated)
  }
}

type Kinds = readonly PermissionOption['kind'][]
const ONCE: Kinds = ['allow_once', 'allow_always']
const ALWAYS: Kinds = ['allow_always', 'allow_once']
const NEVER: Kinds = ['reject_once', 'reject_always']

const outcomeOf = (option: PermissionOption | undefined): RequestPermissionResponse => ({
  outcome: option ? { outcome: 'selected', optionId: option.optionId } : { outcome: 'cancelled' },
})

const chosen = (options: readonly PermissionOption[], kinds: Kinds): PermissionOption | undefined =>
  kinds.flatMap(kind => options.filter(option => option.kind === kind))[0]

/** Some lines of a text, counted from 1. */
const part = (text: string, from: number, most: number): string => {
  if (from <= 1 && most === Infinity) return text
  return text
    .split('\n')
    .slice(Math.max(from, 1) - 1, Math.max(from, 1) - 1 + most)
    .join('\n')
}

/** The error for the program; anything unknown is a bug in the daemon. */
const declined = (error: unknown, path: string): Error => {
  if (error instanceof Declined) return error
  if (error instanceof Refusal) return new Declined(error.message, error.reason === 'not-found' ? ABSENT : undefined)
  const code = codeOf(error)
  return code === undefined
    ? (error as Error)
    : new Declined(`${path}: the file system failed with ${code}`, code === 'ENOENT' ? ABSENT : undefined)
}
