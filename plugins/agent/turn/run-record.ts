import type { AnsweredCard, TranscriptMessage, ToolCard } from '../contract.js'
import type {
  Card,
  ErrorFrame,
  Frame,
  PermissionMode,
  ResolvedFrame,
  ResumedFrame,
  RunEnd,
  ToolCallFrame,
  ToolCallUpdateFrame,
  TurnNote,
  Unenforced,
} from './frames/frames.js'
import { Spending } from '../spending/spending.js'
import { SubagentRecord } from '../subagents/record.js'

/** A row of the record without its position. */
export type Row = Omit<TranscriptMessage, 'index'>

/** The message of a run. */
export interface OpeningWords {
  readonly run: string
  readonly text: string
  readonly sentAt: number
  readonly by: string
  readonly messageId: string
  readonly errand?: string
  readonly attachments?: readonly string[]
  /** An earlier run of the message already wrote them to the record. */
  readonly known?: boolean
}

const CHANGING = new Set<ToolCard['category']>(['edit', 'delete', 'move'])
const OVER = new Set(['completed', 'failed'])
const WHY = { restart: 'a restart', outage: 'an outage', auth: 'a new sign-in' } as const satisfies {
  [reason in ResumedFrame['reason']]: string
}

/** Accumulates the frames of a run: its rows, open calls and cards, cost and status. */
export class RunRecord {
  readonly #run: string
  readonly #known: boolean
  readonly #rows: Row[]
  readonly #tools = new Map<string, ToolCard>()
  readonly #open = new Map<string, ToolCard>()
  readonly #cards = new Map<string, { row: AnsweredCard; resolved?: ResolvedFrame }>()
  readonly #said = new Set<string>()
  readonly helpers = new SubagentRecord()
  readonly spending = new Spending()
  #current: Row | undefined
  #prose = false
  #last: ToolCard | undefined
  /** The first error, which names why the run failed. */
  failure: ErrorFrame | undefined
  done: RunEnd | undefined
  sessionId: string | undefined
  todo: string | undefined
  toolUses = 0
  costUsd = 0
  inputTokens = 0
  outputTokens = 0
  /** The last reported use of the model's context. */
  context: { readonly tokens: number; readonly window: number } | undefined
  /** The number of landings in the frames. */
  landings = 0
  /** The payments whose receipt was shown, by offer or call. */
  readonly receipts = new Set<string>()
  /** How often its session was made shorter. */
  compactions = 0
  /** How often the run moved to another provider choice. */
  switches = 0
  /** The permission mode the frames end in. */
  mode: PermissionMode | undefined
  /** Restrictions that cannot be enforced on its program. */
  unenforced: readonly Unenforced[] | undefined
  /** All frames before the provider's first one are in the log. */
  prepared = false

  constructor({ run, text, sentAt, by, messageId, errand, attachments, known }: OpeningWords) {
    this.#run = run
    this.#known = known ?? false
    this.#rows = [
      {
        role: 'user',
        text,
        run,
        sentAt,
        by,
        messageId,
        ...(errand && { errand }),
        ...(attachments?.length && { attachments: [...attachments] }),
      },
    ]
  }

  /** The rows of the run. */
  get rows(): readonly Row[] {
    return this.#rows
      .slice(this.#known ? 1 : 0)
      .filter(({ role, text, thinking, tools, cards }) => role !== 'assistant' || text || thinking || tools || cards)
  }

  /** Everything the agent has said. */
  get prose(): string {
    return this.#rows.flatMap(({ role, text }) => (role === 'assistant' && text ? [text] : [])).join('\n\n')
  }

  /** The last thing the agent said. */
  get report(): string | undefined {
    return this.#rows.findLast(({ role, text }) => role === 'assistant' && text)?.text
  }

  /** The notes before the message. */
  get notes(): TurnNote[] | undefined {
    return this.#rows[0]?.notes
  }

  /** Whether a block of prose is open. */
  get speaking(): boolean {
    return this.#prose
  }

  /** Calls that have neither completed nor failed. */
  get openTools(): readonly ToolCard[] {
    return [...this.#open.values()]
  }

  /** The files whose change a call shows. */
  get changedFiles(): ReadonlySet<string> {
    return new Set(
      [...this.#tools.values()].flatMap(({ category, locations = [], content = [] }) => [
        ...(CHANGING.has(category) ? locations.map(({ path }) => path) : []),
        ...content.flatMap(each => (each.type === 'diff' ? [each.path] : [])),
      ]),
    )
  }

  /** What the turn is doing now. */
  get tool(): ToolCard | undefined {
    return this.#last && this.#open.has(this.#last.id) ? this.#last : this.openTools.at(-1)
  }

  /** Cards without a `resolved`. */
  get openCards(): readonly Card[] {
    return [...this.#cards.values()].filter(({ resolved }) => !resolved).map(({ row }) => row.card)
  }

  /** Whether words with this id are in the frames. */
  said(messageId: string): boolean {
    return this.#said.has(messageId)
  }

  /** A card whose frame is in the log, and its `resolved` frame. */
  card(requestId: string): { readonly row: AnsweredCard; resolved?: ResolvedFrame } | undefined {
    return this.#cards.get(requestId)
  }

  /**
   * @param at The time of the frame.
   */
  add(frame: Frame, at = Date.now()): void {
    this.spending.add(frame)
    switch (frame.kind) {
      case 'session':
        this.sessionId = frame.sessionId
        this.prepared = true
        return
      case 'init':
        this.unenforced = frame.unenforced
        return
      case 'checkpoint':
        this.prepared = true
        return
      case 'preamble':
        this.#rows[0]!.notes = frame.notes.map((note): TurnNote => ({ ...note }))
        return
      case 'delta':
        return frame.parentToolUseId === undefined ? this.#say(frame.text) : undefined
      case 'text_end':
        if (frame.parentToolUseId === undefined) this.#prose = false
        return
      case 'thinking':
        return this.#think(frame.text, frame.parentToolUseId)
      case 'tool_call':
        return this.#call(frame)
      case 'tool_call_update':
        return this.#update(frame)
      case 'subagent':
      case 'subagent_update':
        return this.helpers.add(frame, at)
      case 'todos':
        this.todo = (
          frame.items.find(item => item.status === 'in_progress') ?? frame.items.find(item => item.status === 'pending')
        )?.content
        return
      case 'usage':
        this.costUsd += frame.costUsd ?? 0
        this.inputTokens += frame.inputTokens ?? 0
        this.outputTokens += frame.outputTokens ?? 0
        return
      case 'plan':
      case 'question':
      case 'permission':
      case 'browser_help':
      case 'terminal_help':
      case 'service_offer':
      case 'capability_offer':
      case 'payment_offer':
        return this.#card(frame)
      case 'compact':
        this.compactions++
        return
      case 'payment_receipt':
        this.receipts.add(frame.requestId)
        return
      case 'context_usage':
        this.context = { tokens: frame.tokens, window: frame.contextWindow }
        return
      case 'resolved':
        return this.#resolved(frame)
      case 'steer':
        if (frame.messageId) this.#said.add(frame.messageId)
        return this.#row({
          role: 'user',
          text: frame.text,
          run: this.#run,
          sentAt: frame.sentAt,
          ...(frame.by && { by: frame.by }),
          ...(frame.messageId && { messageId: frame.messageId }),
          ...(frame.errand && { errand: frame.errand }),
          ...(frame.attachments?.length && { attachments: frame.attachments }),
        })
      case 'resumed':
        return this.#row({ role: 'notice', text: `went on after ${WHY[frame.reason]}`, run: this.#run })
      case 'error':
        this.failure ??= frame
        return this.#row({ role: 'notice', text: frame.message, run: this.#run })
      case 'switched':
        this.switches++
        if (frame.kept === 'session') return
        this.sessionId = undefined
        this.#current = undefined
        this.#prose = false
        return
      case 'mode':
        this.mode = frame.mode
        return
      case 'landed':
        this.landings++
        return
      case 'done':
        this.done = frame.reason
    }
  }

  #row(row: Row): void {
    this.#rows.push(row)
    this.#current = undefined
    this.#prose = false
  }

  #assistant(): Row {
    if (this.#current) return this.#current
    this.#current = { role: 'assistant', text: '', run: this.#run }
    this.#rows.push(this.#current)
    return this.#current
  }

  #say(text: string): void {
    const current = this.#current
    if (!this.#prose && current && (current.text || current.tools || current.cards)) this.#current = undefined
    this.#assistant().text += text
    this.#prose = true
  }

  #think(text: string, parent: string | undefined): void {
    const helper = parent === undefined ? undefined : this.#tools.get(parent)
    if (helper) return void (helper.thinking = (helper.thinking ?? '') + text)
    const current = this.#current
    if (current && (current.text || current.tools || current.cards)) this.#current = undefined
    const row = this.#assistant()
    row.thinking = (row.thinking ?? '') + text
    this.#prose = false
  }

  #call({ kind: _kind, parentToolUseId, ...call }: ToolCallFrame): void {
    const card: ToolCard = { ...call }
    const parent = parentToolUseId === undefined ? undefined : this.#tools.get(parentToolUseId)
    if (parent) (parent.children ??= []).push(card)
    else {
      ;(this.#assistant().tools ??= []).push(card)
      this.#prose = false
    }
    this.#tools.set(card.id, card)
    this.#last = card
    this.toolUses++
    if (!OVER.has(card.status)) this.#open.set(card.id, card)
  }

  #update({ id, status, content, locations, target, name, category }: ToolCallUpdateFrame): void {
    const card = this.#tools.get(id)
    if (!card) return
    if (target) card.target = target
    if (name) card.name = name
    if (category) card.category = category
    if (status) card.status = status
    if (content) card.content = content
    if (locations) card.locations = locations
    if (OVER.has(card.status)) this.#open.delete(id)
    else this.#open.set(id, card)
  }

  #card(card: Card): void {
    const row: AnsweredCard = { card }
    ;(this.#assistant().cards ??= []).push(row)
    this.#prose = false
    this.#cards.set(card.requestId, { row })
  }

  #resolved(frame: ResolvedFrame): void {
    const card = this.#cards.get(frame.requestId)
    if (!card) return
    card.resolved = frame
    if (frame.reply) card.row.reply = frame.reply
    if (frame.by) card.row.by = frame.by
  }
}
