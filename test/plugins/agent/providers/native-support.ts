import { setTimeout as delay } from 'node:timers/promises'
import type { EndpointTarget } from '../../../../plugins/endpoints/contract.js'
import type {
  OfferedTool,
  ToolResult,
  TurnIo,
  TurnRequest,
  UserMessage,
} from '../../../../plugins/agent/providers/adapter.js'
import { nativeAdapter } from '../../../../plugins/agent/providers/native/native-adapter.js'
import type { NativeDeps } from '../../../../plugins/agent/providers/native/native-turn.js'
import { memorySessions, nativeSessionOf } from '../../../../plugins/agent/providers/native/session.js'
import type { Frame } from '../../../../plugins/agent/turn/frames/frames.js'

export const DEAD = new Error('killed')

const object = (properties: object) => ({ type: 'object', properties, additionalProperties: false })
const text = { type: 'string' }

/** The tools of a turn: two that read, and three that change something. */
export const OFFERED: readonly OfferedTool[] = [
  { name: 'Read', description: 'Reads.', input: object({ path: text }), category: 'read', readOnly: true },
  { name: 'Search', description: 'Searches.', input: object({ query: text }), category: 'search', readOnly: true },
  {
    name: 'Write',
    description: 'Writes.',
    input: object({ path: text, content: text }),
    category: 'edit',
    readOnly: false,
  },
  { name: 'Shell', description: 'Runs.', input: object({ command: text }), category: 'execute', readOnly: false },
  { name: 'Plan', description: 'Plans.', input: object({ text }), category: 'think', readOnly: true },
]

/** A tool call that the world received. */
export interface MadeCall {
  readonly name: string
  readonly input: object
  readonly id: string
  readonly at: number
}

/** The setup of a native world. */
export interface NativeSetup {
  readonly target: EndpointTarget | (() => Promise<EndpointTarget>)
  readonly deps?: Partial<NativeDeps>
  readonly request?: Partial<TurnRequest>
  /** Runs a tool; left out: it returns its input. */
  readonly tool?: (call: MadeCall) => Promise<ToolResult> | ToolResult
  /** Messages to the turn, taken at the next check. */
  readonly said?: UserMessage[]
}

/** The engine's side of a native turn, in memory; simulates a kill at the nth step. */
export class NativeWorld {
  readonly setup: NativeSetup
  readonly sessions
  readonly log: Frame[] = []
  readonly calls: MadeCall[] = []
  readonly files = new Map<string, string>()
  readonly stop = new AbortController()
  state: unknown
  stateAt = 0
  steps = 0
  dieAt = Infinity
  moves = false
  /** Messages that were not taken when the state was saved. */
  unheard: UserMessage[] = []
  sessionId: string | undefined
  #run = 0

  constructor(setup: NativeSetup) {
    this.setup = setup
    const kept = memorySessions()
    const step = () => this.step()
    this.sessions = {
      ...kept,
      add: async (...[id, entries]: Parameters<typeof kept.add>) => {
        step()
        await kept.add(id, structuredClone(entries))
        step()
      },
      write: async (...[id, entries]: Parameters<typeof kept.write>) => {
        step()
        await kept.write(id, structuredClone(entries))
        step()
      },
      read: async (id: string) => structuredClone(await kept.read(id)),
    }
  }

  step(): void {
    if (++this.steps >= this.dieAt) throw DEAD
  }

  frame(frame: Frame): void {
    this.step()
    this.log.push(structuredClone(frame))
    if (frame.kind === 'session') this.sessionId = frame.sessionId
  }

  request(attempt: number, more: Partial<TurnRequest> = {}): TurnRequest {
    const prompt = 'do it'
    return {
      conversationId: 'c-1',
      run: `r-${this.#run}`,
      attempt,
      depth: 0,
      prompt,
      words: prompt,
      attachments: [],
      mentions: [],
      harness: 'native',
      model: 'm',
      permissionMode: 'bypassPermissions',
      attended: true,
      helpers: { atOnce: 20, perTurn: 200, depth: 3 },
      ...(this.sessionId !== undefined && { sessionId: this.sessionId }),
      ...(attempt > 1 && {
        ...(this.state !== undefined && { state: structuredClone(this.state) }),
        since: this.log.slice(this.stateAt),
        resume: { reason: 'restart' },
      }),
      ...this.setup.request,
      ...more,
    }
  }

  io(): TurnIo {
    return {
      signal: this.stop.signal,
      gap: async ms => {
        if (ms) await delay(ms, undefined, { signal: this.stop.signal }).catch(() => {})
        return this.moves
      },
      takeWords: () => this.setup.said?.splice(0) ?? [],
      waitWords: async () => this.setup.said?.shift(),
      raise: async () => undefined,
      permit: async () => ({ allow: true }),
      tool: async (name, input, id) => {
        this.frame({ kind: 'tool_call', id, name, category: 'other', status: 'in_progress' })
        const call = { name, input, id, at: performance.now() }
        const known = OFFERED.some(tool => tool.name === name)
        if (known) this.calls.push(call)
        const result = known ? await this.effect(call) : failed(`there is no tool ${name}`)
        this.step()
        const status = result.ok ? 'completed' : 'failed'
        this.frame({ kind: 'tool_call_update', id, status, content: result.content })
        return result
      },
      offered: async () => OFFERED,
      expose: () => Promise.reject(new Error('no programs here')),
      walled: () => Promise.reject(new Error('no programs here')),
      shared: async () => undefined,
      helper: async () => ({ status: 'failed', summary: 'no subagents here' }),
      stamp: async path => this.files.get(path),
      state: async value => {
        this.step()
        this.state = structuredClone(value)
        this.stateAt = this.log.length
        this.unheard = [...(this.setup.said ?? [])]
        this.step()
      },
      title: () => {},
      mode: mode => void this.log.push({ kind: 'mode', mode }),
    }
  }

  async effect(call: MadeCall): Promise<ToolResult> {
    const { path, content } = call.input as { path?: string; content?: string }
    if (call.name === 'Write' && path !== undefined) this.files.set(path, content ?? '')
    return (await this.setup.tool?.(call)) ?? done(`did ${call.name} ${JSON.stringify(call.input)}`)
  }

  /** Runs the turn, or another attempt of it, until it ends or is killed. */
  async run(attempt = 1, more: Partial<TurnRequest> = {}): Promise<this> {
    const { target, deps, said } = this.setup
    const since = new Set(this.log.slice(this.stateAt).map(frame => frame.kind === 'steer' && frame.messageId))
    if (attempt > 1) said?.splice(0, Infinity, ...this.unheard.filter(({ messageId = '' }) => !since.has(messageId)))
    const provider = {
      id: 'endpoint/e-1',
      label: 'Server',
      models: ['m'],
      target: typeof target === 'function' ? target : async () => target,
    }
    const adapter = nativeAdapter(provider, {
      sessions: this.sessions,
      again: { times: 8, firstMs: 1, mostMs: 4, longestMs: 1000 },
      ...deps,
    })
    try {
      for await (const frame of adapter.run(this.request(attempt, more), this.io())) this.frame(frame)
    } catch (error) {
      if (error !== DEAD) throw error
    }
    return this
  }

  /** The next turn of the conversation. */
  async next(more: Partial<TurnRequest> = {}): Promise<this> {
    this.#run++
    this.log.length = 0
    this.state = undefined
    this.stateAt = 0
    return this.run(1, more)
  }

  /** The input tokens of the answers in the session. */
  async keptTokens(): Promise<number> {
    const entries = (await this.sessions.read(nativeSessionOf('c-1'))) ?? []
    return entries.reduce((sum, entry) => sum + (entry.kind === 'answer' ? entry.usage.input : 0), 0)
  }

  get prose(): string {
    return this.log.map(frame => (frame.kind === 'delta' ? frame.text : frame.kind === 'text_end' ? '\n' : '')).join('')
  }

  get kinds(): string[] {
    return this.log.map(({ kind }) => kind)
  }

  find<K extends Frame['kind']>(kind: K): Extract<Frame, { kind: K }>[] {
    return this.log.filter((frame): frame is Extract<Frame, { kind: K }> => frame.kind === kind)
  }
}

export const done = (text: string): ToolResult => ({ ok: true, text, content: [{ type: 'text', text }] })
export const failed = (text: string): ToolResult => ({ ok: false, text, content: [{ type: 'text', text }] })

const USED = ['inputTokens', 'outputTokens', 'cacheReadTokens', 'cacheCreationTokens', 'numTurns'] as const

/** The sums of what the frames of a turn say was used. */
export const usageOf = (world: NativeWorld): { readonly [field in (typeof USED)[number]]: number } => {
  const frames = world.find('usage')
  const sum = (field: (typeof USED)[number]) => frames.reduce((all, frame) => all + (frame[field] ?? 0), 0)
  return {
    inputTokens: sum('inputTokens'),
    outputTokens: sum('outputTokens'),
    cacheReadTokens: sum('cacheReadTokens'),
    cacheCreationTokens: sum('cacheCreationTokens'),
    numTurns: sum('numTurns'),
  }
}

/** Runs one turn against a server. */
export const nativeRun = (
  target: NativeSetup['target'],
  more: Omit<NativeSetup, 'target'> = {},
): Promise<NativeWorld> => new NativeWorld({ target, ...more }).run()
