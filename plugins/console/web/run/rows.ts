import type { Frame, TodoItem } from '../../../agent/contract.js'
import { FRAME_NOTES, type Note, type NotedFrame, type NotedRun, type RunStanding } from './notes.js'
import type { CardRow, LineRow, RunRow, ToolRow, UserRow } from './row-kinds.js'

const TODO_NONE: readonly TodoItem[] = []

/** The rows that the frames of one run add up to. Feeding a frame twice, by its position, changes nothing. */
export class RunRows {
  readonly run: string
  #rows: RunRow[] = []
  #places = new Map<string, number>()
  #prose: string | undefined
  #thinking: string | undefined
  #last = 0
  #count = 0
  #standing: RunStanding = { todos: TODO_NONE, commands: [], queued: 0 }
  readonly #notes: NotedRun = {
    standing: () => this.#standing,
    stand: change => {
      this.#standing = { ...this.#standing, ...change }
    },
    line: (level, text, details) => this.#line(level, text, details),
    cardEvent: (requestId, event) => this.#cardEvent(requestId, event),
    checkpoint: index => this.#checkpoint(index),
    end: reason => this.#end(reason),
  }
  done: string | undefined

  constructor(run: string, prompt?: Pick<UserRow, 'text' | 'sentAt' | 'attachments'>) {
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

  #note(frame: NotedFrame): void {
    const note = Object.hasOwn(FRAME_NOTES, frame.kind) ? (FRAME_NOTES[frame.kind] as Note<NotedFrame>) : undefined
    if (note) note(frame, this.#notes)
    else this.#line('quiet', `This page does not know "${String(frame.kind)}".`)
  }

  #end(reason: string): void {
    this.#settle()
    this.done = reason
    for (const row of this.#rows) if (row.type === 'card' && row.open) this.#put({ ...row, open: false })
  }

  #checkpoint(index: number): void {
    const prompt = this.#find(`${this.run} prompt`, 'user')
    if (prompt) this.#put({ ...prompt, index, checkpoint: true })
  }
}
