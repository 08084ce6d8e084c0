import type { Journals } from '../../../../sdk/index.js'
import type { SentPicture } from '../adapter.js'
import type { ProviderOptions } from '../../../../sdk/node/models/model-call.js'

/** Tokens of answers; `input` counts neither what a cache gave nor what was written to one. */
export interface TokenCount {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

/** Words for the model: a person's, or the sandbox's own. */
export interface WordsEntry {
  readonly kind: 'words'
  /** Its number in the session; numbers only grow. */
  readonly n: number
  readonly run: string
  readonly text: string
  /** What the person said, without the notes before it; left out: all of it. */
  readonly said?: string
  readonly messageId?: string
  readonly pictures?: readonly SentPicture[]
  /** The sandbox's own words, which are no task. */
  readonly by?: 'sandbox'
}

/** Metadata that a package needs back with a part of an answer, such as a signature. */
interface Kept {
  readonly meta?: ProviderOptions
}

export interface SaidPart extends Kept {
  readonly kind: 'text' | 'thought'
  readonly text: string
}

/** A tool call as the model made it. */
export interface CallPart extends Kept {
  readonly kind: 'call'
  /** The server's id of it. */
  readonly id: string
  /** Its id in the frames of its run. */
  readonly frame: string
  readonly name: string
  /** Left out: the model's text was not a JSON object. */
  readonly input?: { readonly [field: string]: unknown }
  /** Why the text was not valid. */
  readonly malformed?: string
}

/** One answer of a model. */
export interface AnswerEntry {
  readonly kind: 'answer'
  readonly n: number
  readonly run: string
  readonly parts: readonly (SaidPart | CallPart)[]
  readonly usage: TokenCount
  /** Server protocol and model: only these accept the package's metadata. */
  readonly by: string
  /** A stop cut it off. */
  readonly cut?: true
}

/** The result of a call of the answer before it. */
export interface ResultEntry {
  readonly kind: 'result'
  readonly n: number
  /** The call's id in the frames of its run. */
  readonly frame: string
  readonly ok: boolean
  readonly text: string
  readonly pictures?: readonly SentPicture[]
}

/** Words of a person, or of whoever gave the task. */
export interface KeptWords {
  readonly run: string
  readonly text: string
  readonly pictures?: readonly SentPicture[]
}

/** An item of the todo list. */
export interface KeptItem {
  readonly content: string
  readonly status: string
}

/** What of a conversation is kept word for word, however often it is made shorter. */
export interface KeptFacts {
  /** Oldest first. */
  readonly words: readonly KeptWords[]
  /** What people decided: answers to questions and refusals, oldest first. */
  readonly decisions: readonly string[]
  /** The newest plan, and what was said to it. */
  readonly plan?: { readonly text: string; readonly said: string }
  readonly todos?: readonly KeptItem[]
  /** The files that were read or changed, the newest last. */
  readonly files: readonly string[]
}

/** A summary that replaces everything before it. */
export interface SummaryEntry {
  readonly kind: 'summary'
  readonly n: number
  readonly text: string
  /** What of these entries stays word for word; `text` contains it. */
  readonly kept?: KeptFacts
  /** Pictures of the present request. */
  readonly pictures?: readonly SentPicture[]
}

/** One entry of a session: the message list of a conversation with a model. */
export type SessionEntry = WordsEntry | AnswerEntry | ResultEntry | SummaryEntry
type WithoutNumber<E> = E extends SessionEntry ? Omit<E, 'n'> : never
/** An entry before it has its number. */
export type NewEntry = WithoutNumber<SessionEntry>

/** The store of sessions. Changes survive `kill -9` when the call returns. */
export interface NativeSessions {
  /** Returns undefined if there is none, or it cannot be read. */
  read(id: string): Promise<SessionEntry[] | undefined>
  add(id: string, entries: readonly SessionEntry[]): Promise<void>
  write(id: string, entries: readonly SessionEntry[]): Promise<void>
  remove(id: string): Promise<void>
}

/** The id of a conversation's session. */
export const nativeSessionOf = (conversationId: string): string => `native-${conversationId}`

const KINDS = new Set<SessionEntry['kind']>(['words', 'answer', 'result', 'summary'])
const isEntry = (value: unknown): value is SessionEntry =>
  typeof value === 'object' && value !== null && KINDS.has((value as SessionEntry).kind)

/**
 * Sessions as journals, one line an entry.
 *
 * @param mask Replaces stored values, which a model may have written itself.
 */
export const journalSessions = (
  journal: Pick<Journals, 'append' | 'read' | 'rewrite' | 'remove'>,
  mask: (entry: SessionEntry) => SessionEntry = entry => entry,
): NativeSessions => {
  const nameOf = (id: string) => `sessions/${id}`
  return {
    read: async id => {
      const entries = await journal.read<unknown>(nameOf(id)).catch((): unknown[] => [])
      const known = entries.filter(isEntry)
      return known.length > 0 && known.length === entries.length ? known : undefined
    },
    add: async (id, entries) => void (await journal.append(nameOf(id), entries.map(mask))),
    write: (id, entries) => journal.rewrite(nameOf(id), entries.map(mask)),
    remove: id => journal.remove(nameOf(id)),
  }
}

/** Sessions in memory: those of subagents, which are never continued. */
export const memorySessions = (): NativeSessions => {
  const kept = new Map<string, SessionEntry[]>()
  return {
    read: async id => kept.get(id),
    add: async (id, entries) => void kept.set(id, [...(kept.get(id) ?? []), ...entries]),
    write: async (id, entries) => void kept.set(id, [...entries]),
    remove: async id => void kept.delete(id),
  }
}

export const NO_TOKENS: TokenCount = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }

/** All tokens of a request and its answer. */
export const tokensSpent = ({ input, output, cacheRead, cacheWrite }: TokenCount): number =>
  input + output + cacheRead + cacheWrite

export const sumTokens = (one: TokenCount, other: TokenCount): TokenCount => ({
  input: one.input + other.input,
  output: one.output + other.output,
  cacheRead: one.cacheRead + other.cacheRead,
  cacheWrite: one.cacheWrite + other.cacheWrite,
})

/** The tokens that are not among those known. */
export const tokensBeyond = (all: TokenCount, known: TokenCount): TokenCount => ({
  input: Math.max(0, all.input - known.input),
  output: Math.max(0, all.output - known.output),
  cacheRead: Math.max(0, all.cacheRead - known.cacheRead),
  cacheWrite: Math.max(0, all.cacheWrite - known.cacheWrite),
})
