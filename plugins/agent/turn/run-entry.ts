import type { CallerKind, Journals } from '../../../sdk/index.js'
import type { UserMessage } from '../providers/adapter.js'
import type { CardReply, TurnInput } from '../contract.js'
import type { Card, Harness, PermissionMode, RunEnd } from './frames/frames.js'
import type { AccessLimits } from '../conversations/access-view.js'
import type { TurnArms } from '../briefing/contract.js'
import { ignored } from '../../../sdk/index.js'

/** What a run takes over from the previous run of its message, which an outage ended. */
export interface AfterOutage {
  readonly from: string
  /** The number of runs of the message, including this one. */
  readonly attempt: number
  /** How often the message was retried after an outage, including this time. */
  readonly tries: number
  /** When an outage first ended a run of the message. */
  readonly since: number
  /** The saved state of the adapter, and the messages that it had not taken. */
  readonly state?: unknown
  readonly unheard?: readonly UserMessage[]
  readonly round?: RuleRound
}

/** A message that is queued, or whose turn is running. */
export interface RunMessage {
  readonly run: string
  readonly conversationId: string
  readonly messageId: string
  readonly input: TurnInput
  readonly by: string
  /** Its sender may land; otherwise the work waits for somebody who may. */
  readonly lands?: boolean
  /** What its sender showed: a session is a signed-in person. */
  readonly from?: CallerKind
  /** Its sender is limited to areas, and so is its turn. */
  readonly limits?: AccessLimits
  /** A person or a token sent it, so cards can be answered. */
  readonly attended: boolean
  /** A person approved its cost before it started. */
  readonly approved?: boolean
  /** Its model gets neither the session nor the record of earlier turns. */
  readonly fresh?: boolean
  /** The path of the document that it is asked to write. */
  readonly document?: string
  readonly at: number
  readonly resumed?: AfterOutage
}

/** A run that an outage ended, as it can be resumed. */
export interface Resumable {
  /** The message of the run to come. */
  readonly message: RunMessage
  readonly failedAt: number
  /** When it is resumed; absent: resuming is off. */
  readonly at?: number
}

/** An open card; `helper`: the subagent that asks, if not the turn's own agent. */
export interface ParkedCard {
  readonly card: Card
  readonly at: number
  /** The call that waits for its answer: a digest of its tool and input. Left out: none does. */
  readonly holds?: string
  readonly helper?: string
}

/** The provider, account, harness and model of a turn. */
export interface ProviderChoice {
  provider: string
  harness: Harness
  model: string
  effort?: string | undefined
  thinking?: boolean | undefined
  fast?: boolean | undefined
}

/** How hard a turn was judged, and what followed; stored with the turn, and in the ledger. */
export interface JudgedTier {
  readonly tier: 'fast' | 'standard'
  readonly score: number
  readonly rules: readonly string[]
  /** What the turn was asked to run on. */
  readonly chosen: ProviderChoice
  /** The fast model that it began on. */
  readonly routed?: string
  /** Why it went on with the chosen model. */
  readonly escalated?: string
  /** Why an easy turn was not routed. */
  readonly denied?: string
}

/** The provider choice to which a turn moves at its next gap, and from what it continues; `nth` counts its moves. */
export interface Moving extends ProviderChoice {
  readonly nth: number
  readonly kept: 'session' | 'record'
}

/** One more round of a turn, which rules of the settings asked for. */
export interface RuleRound {
  /** Starts at 1. */
  readonly nth: number
  /** What the agent is told. */
  readonly text: string
  /** The rules that have instructed the turn. */
  readonly said: readonly string[]
}

/** What a restart needs to know of a run in flight. */
export interface EntryFields extends ProviderChoice {
  message: RunMessage
  startedAt: number
  attempt: number
  /** The restarts after which the turn resumed without a person's answer. */
  boots: number
  permissionMode: PermissionMode
  moving?: Moving
  state?: unknown
  /** The number of frames in the log when `state` was saved. */
  stateSeq?: number
  parked: ParkedCard[]
  /** Messages that the adapter had not taken when `state` was saved. */
  unheard?: UserMessage[]
  /** Answers whose effect the adapter may not have saved yet. */
  answered?: { card: Card; reply: CardReply; holds?: string }[]
  stopping?: boolean
  /** Somebody who may not land sent input. */
  outsiders?: boolean
  /** A control token sent input. */
  tokens?: boolean
  /** The content from outside that the turn has taken in first. */
  outside?: string
  /** Its arms in the experiments that were running when it began. */
  arms?: TurnArms
  /** How hard it was judged, and what followed. */
  tier?: JudgedTier
  /** The round that rules asked for last. */
  round?: RuleRound
  /** A check of the rules did not pass when the turn ended. */
  unmet?: boolean
  /** How the run ends, once that is decided. */
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

/**
 * The stored state of a running turn, from which the next start of the daemon resumes: a journal of changes, the last
 * one wins.
 */
export class RunEntry {
  readonly #journals: Pick<Journals, 'append' | 'rewrite' | 'remove'>
  readonly #name: string
  #fields: EntryFields
  #lines = 0
  #bytes = 0
  #removed = false
  #tail: Promise<unknown> = Promise.resolve()
  /** Called when input of somebody who may not land, or content from outside, came in, before the turn uses it. */
  onOthers: (() => void) | undefined
  /** Awaited when input of somebody who may not land came in, before the turn uses it. */
  onOutsiders: (() => Promise<void>) | undefined

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
  async change(patch: Change, { flush = false } = {}): Promise<void> {
    const line = lineOf(patch)
    this.#fields = merged([this.#fields, line]) as EntryFields
    if (patch.outsiders || patch.outside !== undefined) this.onOthers?.()
    await Promise.all([this.#write(line, flush), patch.outsiders && this.onOutsiders?.()])
  }

  /** Removes the entry of an ended run; nothing is written after this. */
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
    this.#tail = mine.catch(ignored('the step before told its own caller'))
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

/** The entry from the lines of its journal; undefined if they are incomplete. */
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
