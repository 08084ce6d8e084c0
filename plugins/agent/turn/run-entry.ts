import type { Journals } from '../../../sdk/index.js'
import type { UserMessage } from '../providers/adapter.js'
import type { CardReply, TurnInput } from '../contract.js'
import type { Card, Harness, PermissionMode, RunEnd } from './frames/frames.js'
import type { AccessLimits } from '../conversations/access-view.js'

/** What a run has from the one before it of the same message, which an outage of the provider ended. */
export interface AfterOutage {
  readonly from: string
  /** The runs of the message, this one included. */
  readonly attempt: number
  /** How often an outage was waited out for the message, this time included. */
  readonly tries: number
  /** When an outage first ended a run of the message. */
  readonly since: number
  /** What the adapter had saved, and the words it had not taken. */
  readonly state?: unknown
  readonly unheard?: readonly UserMessage[]
}

/** A message that waits for its turn, or whose turn is under way. */
export interface RunMessage {
  readonly run: string
  readonly conversationId: string
  readonly messageId: string
  readonly input: TurnInput
  readonly by: string
  /** Its sender may land; without it the work waits for somebody who may. */
  readonly lands?: boolean
  /** Its sender is limited to areas: its turn reaches what they cover, and nothing else. */
  readonly limits?: AccessLimits
  /** A person or a token stands behind it: cards may go up. */
  readonly attended: boolean
  readonly at: number
  readonly resumed?: AfterOutage
}

/** A run that an outage ended, as it can be resumed. */
export interface Resumable {
  /** The message of the run to come. */
  readonly message: RunMessage
  readonly failedAt: number
  /** When it is resumed; absent: nobody wants that. */
  readonly at?: number
}

/** A card that is up; `helper`: who asks, when not the turn's own agent. */
export interface ParkedCard {
  readonly card: Card
  readonly at: number
  /** Which call waits for its answer: a digest of its tool and input. Left out: none does. */
  readonly holds?: string
  readonly helper?: string
}

/** What a turn runs on. */
export interface ProviderChoice {
  provider: string
  harness: Harness
  model: string
  effort?: string | undefined
  thinking?: boolean | undefined
  fast?: boolean | undefined
}

/** Where a turn is to go on at its next gap, and from what; `nth`: which of its moves this is. */
export interface Moving extends ProviderChoice {
  readonly nth: number
  readonly kept: 'session' | 'record'
}

/** What a restart needs to know of a run in flight. */
export interface EntryFields extends ProviderChoice {
  message: RunMessage
  startedAt: number
  attempt: number
  /** Restarts after which the turn went on without anybody's answer. */
  boots: number
  permissionMode: PermissionMode
  moving?: Moving
  state?: unknown
  /** How many frames the log held when `state` was saved. */
  stateSeq?: number
  parked: ParkedCard[]
  /** Words said that the adapter had not taken when `state` was saved. */
  unheard?: UserMessage[]
  /** Answers given whose effect the adapter may not have saved yet. */
  answered?: { card: Card; reply: CardReply; holds?: string }[]
  stopping?: boolean
  /** Somebody who may not land had a say. */
  outsiders?: boolean
  /** How the run ends, once that is certain. */
  ending?: RunEnd
}

/** What changes of an entry; undefined: the field goes. */
type Change = { [field in keyof EntryFields]?: EntryFields[field] | undefined }

/** A line of an entry's journal; `gone` names the fields that no longer hold. */
type Line = Partial<EntryFields> & { gone?: string[] }

const MOST_LINES = 200
const MOST_BYTES = 8 * 1024 * 1024

/** The journal of one run in flight. */
export const entryOf = (run: string): string => `runs/${run}`

/** One run in flight as the next start of the daemon would find it: a journal of changes, the last one wins. */
export class RunEntry {
  readonly #journals: Pick<Journals, 'append' | 'rewrite' | 'remove'>
  readonly #name: string
  #fields: EntryFields
  #lines = 0
  #bytes = 0
  #removed = false
  #tail: Promise<unknown> = Promise.resolve()

  constructor(journals: Pick<Journals, 'append' | 'rewrite' | 'remove'>, fields: EntryFields, lines = 0) {
    this.#journals = journals
    this.#name = entryOf(fields.message.run)
    this.#fields = fields
    this.#lines = lines
  }

  get fields(): Readonly<EntryFields> {
    return this.#fields
  }

  /** Writes the whole entry for the first time. */
  open(): Promise<void> {
    return this.#write(this.#fields)
  }

  /**
   * Changes what the entry says, a field that is undefined goes; in the journal when it returns, and with `flush` a
   * power cut takes back neither it nor what was written before.
   */
  change(patch: Change, { flush = false } = {}): Promise<void> {
    const line = lineOf(patch)
    this.#fields = merged([this.#fields, line]) as EntryFields
    return this.#write(line, flush)
  }

  /** The run is over: nothing is written after this. */
  remove(): Promise<void> {
    this.#removed = true
    return this.#next(() => this.#journals.remove(this.#name))
  }

  #write(line: Line, flush = false): Promise<void> {
    const state = line.state === undefined ? 0 : JSON.stringify(line.state).length
    return this.#next(async () => {
      if (this.#removed) return
      this.#lines++
      this.#bytes += state
      if (this.#lines > MOST_LINES || this.#bytes > MOST_BYTES) {
        this.#lines = 1
        this.#bytes = state
        return this.#journals.rewrite(this.#name, [this.#fields])
      }
      await this.#journals.append(this.#name, [line], { flush })
    })
  }

  #next<T>(step: () => Promise<T>): Promise<T> {
    const mine = this.#tail.then(step, step)
    this.#tail = mine.catch(() => {})
    return mine
  }
}

const lineOf = (patch: Change): Line => {
  const gone = Object.entries(patch)
    .filter(([, value]) => value === undefined)
    .map(([field]) => field)
  const kept = Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined))
  return { ...kept, ...(gone.length && { gone }) }
}

const merged = (lines: readonly Line[]): Partial<EntryFields> => {
  const fields: Line = {}
  for (const { gone = [], ...line } of lines) {
    Object.assign(fields, line)
    for (const field of gone) delete fields[field as keyof EntryFields]
  }
  return fields
}

/** The entry that the lines of its journal make, or undefined when they make none. */
export const entryFrom = (lines: readonly unknown[]): EntryFields | undefined => {
  const fields = merged(lines.filter(line => typeof line === 'object' && line !== null) as Line[])
  const { message, startedAt, attempt, boots, provider, harness, parked } = fields
  const whole =
    typeof message === 'object'
    && typeof message.run === 'string'
    && typeof message.conversationId === 'string'
    && typeof message.input?.prompt === 'string'
    && typeof startedAt === 'number'
    && typeof attempt === 'number'
    && typeof boots === 'number'
    && typeof provider === 'string'
    && typeof harness === 'string'
    && Array.isArray(parked)
  return whole ? (fields as EntryFields) : undefined
}
