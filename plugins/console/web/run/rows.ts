import type { Card, Frame, TodoItem } from '../../../agent/contract.js'
import type { CardRow, LineRow, RunRow, ToolRow } from './row-kinds.js'

/** The state of a run for the status bar and the side pane. */
export interface RunStanding {
  readonly todos: readonly TodoItem[]
  readonly commands: readonly { readonly name: string; readonly description: string }[]
  readonly usage?: { readonly costUsd?: number; readonly inputTokens?: number; readonly outputTokens?: number }
  readonly context?: { readonly tokens: number; readonly contextWindow: number }
  readonly model?: string
  readonly provider?: string
  readonly note?: string
  readonly mode?: string
  /** How often the queue changed. */
  readonly queued: number
}

const END_WORDS = { failed: 'The turn failed.', stopped: 'The turn was stopped.', interrupted: 'The turn was cut off.' }
const RESUMED = { restart: 'a restart', outage: 'an outage', auth: 'a new sign-in' }
const TODO_NONE: readonly TodoItem[] = []

/** Frames that create or change rows directly. */
type RowKind =
  | Card['kind']
  | 'session'
  | 'delta'
  | 'text_end'
  | 'thinking'
  | 'steer'
  | 'tool_call'
  | 'tool_call_update'
  | 'subagent'
  | 'subagent_update'
  | 'resolved'
type NotedFrame = Exclude<Frame, { kind: RowKind }>

type MutableStanding = { -readonly [K in keyof RunStanding]: RunStanding[K] }

/** The rows that the frames of one run add up to. Feeding a frame twice, by its position, changes nothing. */
export class RunRows {
  readonly run: string
  #rows: RunRow[] = []
  #places = new Map<string, number>()
  #prose: string | undefined
  #thinking: string | undefined
  #last = 0
  #count = 0
  #standing: MutableStanding = { todos: TODO_NONE, commands: [], queued: 0 }
  done: string | undefined

  constructor(run: string, prompt?: { readonly text: string; readonly sentAt: number }) {
    this.run = run
    if (prompt) this.#put({ type: 'user', key: `${run} prompt`, ...prompt })
  }

  get rows(): readonly RunRow[] {
    return this.#rows
  }

  get standing(): RunStanding {
    return this.#standing
  }

  /** The position of the last frame. */
  get last(): number {
    return this.#last
  }

  /** Starts after a position: the frames before it are left out. */
  startAfter(position: number): void {
    this.#last = position
  }

  /** @returns Whether the frame was new. */
  add(position: number, frame: Frame): boolean {
    if (position <= this.#last) return false
    this.#last = position
    this.#take(frame)
    return true
  }

  #key(word: string): string {
    return `${this.run} ${word} ${++this.#count}`
  }

  #put(row: RunRow): void {
    const at = this.#places.get(row.key)
    if (at === undefined) {
      this.#places.set(row.key, this.#rows.length)
      this.#rows = [...this.#rows, row]
    } else this.#rows = this.#rows.with(at, row)
  }

  #find<T extends RunRow['type']>(key: string, type: T): Extract<RunRow, { type: T }> | undefined {
    const row = this.#rows[this.#places.get(key) ?? -1]
    return row?.type === type ? (row as Extract<RunRow, { type: T }>) : undefined
  }

  #line(level: LineRow['level'], text: string, details?: LineRow['details']): void {
    this.#settle()
    this.#put({ type: 'line', key: this.#key('line'), level, text, ...(details && { details }) })
  }

  /** Ends the growing texts: later frames begin new ones. */
  #settle(): void {
    const prose = this.#prose && this.#find(this.#prose, 'prose')
    if (prose) this.#put({ ...prose, settled: true })
    this.#prose = undefined
    this.#thinking = undefined
  }

  /** Adds to the rows of a subagent, below the call that started it; false: unknown call. */
  #within(parent: string | undefined, change: (children: readonly RunRow[]) => readonly RunRow[]): boolean {
    const tool = parent === undefined ? undefined : this.#find(`${this.run} tool ${parent}`, 'tool')
    if (!tool) return false
    this.#put({ ...tool, children: change(tool.children) })
    return true
  }

  #say(text: string, parent: string | undefined, type: 'prose' | 'thinking'): void {
    const grow = (children: readonly RunRow[]) => {
      const last = children.at(-1)
      if (last?.type === type) return children.with(-1, { ...last, text: last.text + text } as RunRow)
      const key = this.#key(type)
      return [...children, type === 'prose' ? { type, key, text, settled: true } : { type, key, text }] as RunRow[]
    }
    if (this.#within(parent, grow)) return
    const held = type === 'prose' ? this.#prose : this.#thinking
    const row = held === undefined ? undefined : this.#find(held, type)
    if (row) return this.#put({ ...row, text: row.text + text })
    this.#settle()
    const key = this.#key(type)
    if (type === 'prose') {
      this.#prose = key
      return this.#put({ type, key, text, settled: false })
    }
    this.#thinking = key
    this.#put({ type, key, text })
  }

  #card(requestId: string, change: Partial<CardRow>): void {
    const row = this.#find(`${this.run} card ${requestId}`, 'card')
    if (row) this.#put({ ...row, ...change })
  }

  #cardEvent(requestId: string, event: string): void {
    const row = this.#find(`${this.run} card ${requestId}`, 'card')
    if (row) this.#put({ ...row, events: [...row.events, event] })
    else this.#line('info', event)
  }

  #toolKey(id: string): string {
    return `${this.run} tool ${id}`
  }

  #take(frame: Frame): void {
    switch (frame.kind) {
      case 'session':
        return
      case 'delta':
        return this.#say(frame.text, frame.parentToolUseId, 'prose')
      case 'text_end':
        return frame.parentToolUseId === undefined ? this.#settle() : undefined
      case 'thinking':
        return this.#say(frame.text, frame.parentToolUseId, 'thinking')
      case 'steer': {
        const { text, sentAt, by, attachments } = frame
        this.#settle()
        const key = this.#key('steer')
        return this.#put({ type: 'user', key, text, sentAt, ...(by && { by }), ...(attachments && { attachments }) })
      }
      case 'tool_call': {
        const { id, name, category, status, target, content = [], parentToolUseId } = frame
        const key = this.#toolKey(id)
        const row: ToolRow = {
          ...{ type: 'tool', key, name, category, status, content, children: [] },
          ...(target !== undefined && { target }),
        }
        if (this.#within(parentToolUseId, children => [...children, row])) return
        this.#settle()
        return this.#put(row)
      }
      case 'tool_call_update':
        return this.#updateTool(frame)
      case 'subagent': {
        const row = this.#find(this.#toolKey(frame.id), 'tool')
        const about = frame.description ?? frame.agentType ?? frame.subagentKind
        if (row) return this.#put({ ...row, subagent: { ...row.subagent, about } })
        return this.#put({
          ...{ type: 'tool', key: this.#toolKey(frame.id), name: 'Subagent', category: 'other', status: 'in_progress' },
          ...{ content: [], children: [], subagent: { about } },
        })
      }
      case 'subagent_update': {
        const row = this.#find(this.#toolKey(frame.id), 'tool')
        if (!row) return
        const summary = frame.summary ?? frame.error
        return this.#put({
          ...row,
          subagent: { ...row.subagent, ...(frame.status && { status: frame.status }), ...(summary && { summary }) },
        })
      }
      case 'plan':
      case 'question':
      case 'permission':
      case 'browser_help':
      case 'terminal_help':
      case 'service_offer':
      case 'capability_offer':
      case 'payment_offer': {
        this.#settle()
        const key = `${this.run} card ${frame.requestId}`
        return this.#put({ type: 'card', key, card: frame, open: true, events: [] })
      }
      case 'resolved': {
        const { reply, by } = frame
        return this.#card(frame.requestId, { open: false, ...(reply && { reply }), ...(by && { by }) })
      }
      default:
        return this.#note(frame)
    }
  }

  #updateTool({ id, kind: _, ...changes }: Extract<Frame, { kind: 'tool_call_update' }>): void {
    const key = this.#toolKey(id)
    const row = this.#find(key, 'tool')
    if (row) return this.#put({ ...row, ...changes })
    // A call of a subagent: below the call that started it.
    for (const one of this.#rows) {
      if (one.type !== 'tool') continue
      const at = one.children.findIndex(child => child.key === key)
      if (at >= 0)
        return this.#put({ ...one, children: one.children.with(at, { ...one.children[at], ...changes } as RunRow) })
    }
  }

  /** Frames that are one line, or part of the status bar. */
  #note(frame: NotedFrame): void {
    switch (frame.kind) {
      case 'worktree': {
        const blocked = frame.sync?.blocked.length
          ? ` ${frame.sync.blocked.join(', ')} could not be brought up to date.`
          : ''
        const open = frame.unenforced ? ' This machine cannot isolate it.' : ''
        return this.#line(
          frame.unenforced || blocked ? 'warning' : 'quiet',
          `Private copy ${frame.branch} of ${frame.base}.${open}${blocked}`,
        )
      }
      case 'preamble':
        return this.#line('quiet', `The sandbox added ${frame.notes.length} notes.`, frame.notes)
      case 'init': {
        const { model, provider, unenforced } = frame
        this.#stand({ model, ...(provider && { provider }) })
        if (unenforced?.length) this.#line('warning', `The program cannot be held to: ${unenforced.join(', ')}.`)
        return
      }
      case 'switched':
        this.#stand({ provider: frame.provider, ...(frame.model && { model: frame.model }) })
        return this.#line('info', `The turn goes on with ${frame.provider} ${frame.model ?? ''}.`)
      case 'resumed':
        return this.#line('info', `The turn was resumed after ${RESUMED[frame.reason] ?? String(frame.reason)}.`)
      case 'checkpoint': {
        const prompt = this.#find(`${this.run} prompt`, 'user')
        if (prompt && frame.index !== undefined) this.#put({ ...prompt, index: frame.index, checkpoint: true })
        return
      }
      case 'mode':
        this.#stand({ mode: frame.mode })
        return this.#line('quiet', `Permission mode: ${frame.mode}.`)
      case 'todos':
        return this.#stand({ todos: frame.items })
      case 'commands':
        return this.#stand({ commands: frame.items })
      case 'usage': {
        const { costUsd, inputTokens, outputTokens, subagent } = frame
        if (subagent !== undefined) return
        const before = this.standing.usage ?? {}
        const usage = {
          ...(costUsd !== undefined && { costUsd: (before.costUsd ?? 0) + costUsd }),
          ...(inputTokens !== undefined && { inputTokens: (before.inputTokens ?? 0) + inputTokens }),
          ...(outputTokens !== undefined && { outputTokens: (before.outputTokens ?? 0) + outputTokens }),
        }
        return this.#stand({ usage: { ...before, ...usage } })
      }
      case 'context_usage':
        return this.#stand({ context: { tokens: frame.tokens, contextWindow: frame.contextWindow } })
      case 'rate_limit_info':
        return frame.status === 'allowed'
          ? undefined
          : this.#line(
              'warning',
              frame.status === 'rejected'
                ? 'A limit of the provider is reached.'
                : 'A limit of the provider is almost reached.',
            )
      case 'account_usage':
        return this.#stand({
          note: frame.windows
            .map(({ label, kind, utilization }) => `${label ?? kind} ${Math.round(utilization)} %`)
            .join(' · '),
        })
      case 'fast_mode':
        return this.#line('quiet', `Fast mode: ${frame.state}${frame.reason ? ` (${frame.reason})` : ''}.`)
      case 'provider_retry':
        return this.#line(
          'warning',
          `The provider is asked again: attempt ${[frame.attempt, frame.maxAttempts].filter(Boolean).join(' of ')}.`,
        )
      case 'compact':
        return this.#line('info', 'The context was made shorter.')
      case 'service_event':
        return this.#cardEvent(
          frame.requestId,
          frame.event.event === 'status' ? frame.event.text : JSON.stringify(frame.event.data),
        )
      case 'service_receipt':
        return this.#cardEvent(
          frame.requestId,
          `${frame.outcome}: ${frame.credits} credits${frame.simulated ? ' (simulated)' : ''}`,
        )
      case 'capability_outcome':
        return this.#cardEvent(
          frame.requestId,
          frame.outcome === 'connected' ? 'It was connected.' : 'It was not connected.',
        )
      case 'payment_receipt':
        return this.#cardEvent(
          frame.requestId,
          `${frame.outcome}: ${frame.amountUsd} USD${frame.simulated ? ' (simulated)' : ''}`,
        )
      case 'queue':
        return this.#stand({ queued: this.#standing.queued + 1 })
      case 'notice':
        return this.#line(frame.level, frame.text)
      case 'error':
        return this.#line('error', frame.message)
      case 'landed':
        if (frame.held) return this.#line('info', 'The work waits for somebody who may land it.')
        return frame.landed
          ? this.#line('info', 'The work was landed.')
          : this.#line('warning', 'The work was not landed: it has conflicts. Review the changes to choose.')
      case 'browser':
      case 'terminal':
        return this.#line('info', `Uses the ${frame.kind} ${frame.session}`)
      case 'need':
        return this.#line('info', `Need ${frame.status}: ${frame.title}`)
      case 'approval':
        return this.#line('info', `Approval ${frame.status}: ${frame.title}`)
      case 'done':
        this.#settle()
        this.done = frame.reason
        for (const row of this.#rows) if (row.type === 'card' && row.open) this.#put({ ...row, open: false })
        return frame.reason === 'completed'
          ? undefined
          : this.#line(
              frame.reason === 'failed' ? 'error' : 'info',
              END_WORDS[frame.reason] ?? `The turn ended: ${String(frame.reason)}.`,
            )
      default: {
        // A kind of frame without a row does not compile; one of a newer daemon is a grey line.
        const unknown: never = frame
        return this.#line('quiet', `This page does not know "${String((unknown as { kind?: unknown }).kind)}".`)
      }
    }
  }

  #stand(change: Partial<RunStanding>): void {
    this.#standing = { ...this.#standing, ...change }
  }
}
