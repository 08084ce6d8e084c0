import { stat } from 'node:fs/promises'
import { ignored } from '../../../../sdk/index.js'
import type { NoticeFrame } from '../../turn/frames/frames.js'
import type { SentPicture } from '../adapter.js'
import { attachedBytes } from '../attached-bytes.js'
import { NOT_RUN } from './instructions.js'
import type { ModelPrompt, ProviderOptions } from '../../../../sdk/node/models/model-call.js'
import type { AnswerEntry, CallPart, ResultEntry, SessionEntry } from './session.js'

type Message = ModelPrompt[number]
type UserContent = Extract<Message, { role: 'user' }>['content']
type AnswerContent = Extract<Message, { role: 'assistant' }>['content']
type PictureContent = UserContent[number]
type Results = Extract<Message, { role: 'tool' }>['content']

/** How a session is converted for a model. */
export interface PromptOptions {
  readonly instructions: string
  /** Server protocol and model. */
  readonly by: string
  /** The model accepts pictures, or it is not known that it does not. */
  readonly pictures: boolean
  /** Its protocol takes pictures in results; otherwise they follow as a message. */
  readonly picturesInResults: boolean
  readonly marksCache: boolean
  /** Pictures that were read before, in base64. */
  readonly album: Map<string, string>
}

const NO_ROOM = 'is left out, because a request takes only the newest: read it again if you need it'
const UNSEEN = '\n[this model takes no pictures, so you do not see it]'
export const MOST_PICTURE = 5 * 1024 * 1024
/** Servers refuse a request with more: pictures of results, of which the oldest are left out, make room. */
const MOST_PICTURES = 20
const MOST_PICTURE_BYTES = 16 * 1024 * 1024
const CACHED: ProviderOptions = { anthropic: { cacheControl: { type: 'ephemeral' } } }

/** Told where pictures are not sent. */
export const NO_PICTURES: NoticeFrame = {
  kind: 'notice',
  level: 'warning',
  text: 'the model accepts no pictures: they are left out',
}

/** Whether entries have pictures. */
export const showsPictures = (entries: readonly SessionEntry[]): boolean =>
  entries.some(entry => entry.kind !== 'answer' && entry.pictures)

/** The messages of a request: the same entries always make the same ones, so that a server's cache of them holds. */
export const promptOf = async (entries: readonly SessionEntry[], asked: PromptOptions): Promise<ModelPrompt> => {
  const options = { ...asked, leftOut: asked.pictures ? await picturesLeftOut(entries) : new Set<SentPicture>() }
  const messages: Message[] = [{ role: 'system', content: options.instructions }]
  for (let at = 0; at < entries.length; at++) {
    const entry = entries[at]!
    if (entry.kind === 'summary' || entry.kind === 'words')
      messages.push(userMessage(await wordsContent(entry, options)))
    else if (entry.kind === 'answer') messages.push(...(await answered(entry, resultsAfter(entries, at), options)))
  }
  // Servers refuse an answer without a message before it.
  if (messages[1]?.role === 'assistant')
    messages.splice(1, 0, userMessage([{ type: 'text', text: '(what was said before is left out)' }]))
  if (options.marksCache) mark(messages)
  return messages
}

interface Converting extends PromptOptions {
  /** There is no room for these. */
  readonly leftOut: ReadonlySet<SentPicture>
}

/**
 * The pictures of results that a request has no room for. Half of the room is made at once, so that the requests that
 * follow begin with the same bytes.
 */
const picturesLeftOut = async (entries: readonly SessionEntry[]): Promise<ReadonlySet<SentPicture>> => {
  const leftOut = new Set<SentPicture>()
  const results: { readonly picture: SentPicture; readonly size: number }[] = []
  let [count, bytes] = [0, 0]
  for (const entry of entries) {
    if (entry.kind === 'answer') continue
    for (const picture of entry.pictures ?? []) {
      const found = await stat(picture.absolute).catch(ignored('it is gone'))
      const size = found?.size ?? 0
      if (entry.kind === 'result') results.push({ picture, size })
      count += 1
      bytes += size
      if (count <= MOST_PICTURES && bytes <= MOST_PICTURE_BYTES) continue
      while (results.length > 1 && (count > MOST_PICTURES / 2 || bytes > MOST_PICTURE_BYTES / 2)) {
        const oldest = results.shift()!
        leftOut.add(oldest.picture)
        count -= 1
        bytes -= oldest.size
      }
    }
  }
  return leftOut
}

const userMessage = (content: UserContent): Message => ({ role: 'user', content })

const wordsContent = async (
  { text, pictures = [] }: { readonly text: string; readonly pictures?: readonly SentPicture[] },
  options: Converting,
): Promise<UserContent> => {
  const content: UserContent = [{ type: 'text', text: text || '(no words)' }]
  for (const picture of options.pictures ? pictures : []) content.push(await pictureContent(picture, options))
  return content
}

const pictureContent = async (picture: SentPicture, { album, leftOut }: Converting): Promise<PictureContent> => {
  if (leftOut.has(picture)) return { type: 'text', text: `[the picture ${picture.path} ${NO_ROOM}]` }
  const data = await pictureBytes(picture, album)
  return data
    ? { type: 'file', mediaType: picture.mime, data: { type: 'data', data } }
    : { type: 'text', text: `[the picture ${picture.path} can no longer be read]` }
}

const pictureBytes = async ({ absolute }: SentPicture, album: Map<string, string>): Promise<string | undefined> => {
  const known = album.get(absolute)
  if (known) return known
  const bytes = await attachedBytes(absolute, MOST_PICTURE)
  if (!bytes) return undefined
  const text = bytes.toString('base64')
  album.set(absolute, text)
  return text
}

/** The results of the calls of the answer at an index. */
const resultsAfter = (entries: readonly SessionEntry[], at: number): Map<string, ResultEntry> => {
  const results = new Map<string, ResultEntry>()
  for (let next = at + 1; next < entries.length; next++) {
    const entry = entries[next]!
    if (entry.kind === 'answer' || entry.kind === 'summary') break
    if (entry.kind === 'result') results.set(entry.frame, entry)
  }
  return results
}

const answered = async (
  { parts, by }: AnswerEntry,
  results: ReadonlyMap<string, ResultEntry>,
  options: Converting,
): Promise<readonly Message[]> => {
  const { by: asks } = options
  const content: AnswerContent = []
  const shown: PictureContent[] = []
  const outcomes: Results = []
  for (const part of parts) {
    const kept = part.meta && by === asks ? { providerOptions: part.meta } : {}
    if (part.kind === 'text') content.push({ type: 'text', text: part.text, ...kept })
    // Thoughts are sent back only to the model that wrote them.
    else if (part.kind === 'thought' && by === asks) content.push({ type: 'reasoning', text: part.text, ...kept })
    else if (part.kind === 'call') {
      const named = { toolCallId: part.id, toolName: wireName(part) }
      content.push({ type: 'tool-call', ...named, input: part.input ?? {}, ...kept })
      const { ok, text, pictures = [] } = results.get(part.frame) ?? { ok: false, text: NOT_RUN }
      const unseen = pictures.length > 0 && !options.pictures ? UNSEEN : ''
      const value = (text || (ok ? '(nothing)' : 'it failed')) + unseen
      const seen = unseen ? [] : await Promise.all(pictures.map(picture => pictureContent(picture, options)))
      const inside = options.picturesInResults && seen.length > 0
      outcomes.push({
        type: 'tool-result',
        ...named,
        output: inside
          ? { type: 'content', value: [{ type: 'text', text: value }, ...seen] }
          : { type: ok ? 'text' : 'error-text', value },
      })
      if (!inside && seen.length > 0)
        shown.push({ type: 'text', text: `[pictures of the result of ${part.name}:]` }, ...seen)
    }
  }
  if (!content.some(({ type }) => type !== 'reasoning')) content.push({ type: 'text', text: '(no answer)' })
  const answer: Message = { role: 'assistant', content }
  return [
    answer,
    ...(outcomes.length > 0 ? [{ role: 'tool' as const, content: outcomes }] : []),
    ...(shown.length > 0 ? [userMessage(shown)] : []),
  ]
}

/** A tool name that every server accepts, whatever the model called. */
const wireName = ({ name }: Pick<CallPart, 'name'>): string => name.replaceAll(/[^\w-]/g, '_').slice(0, 64) || 'unknown'

/**
 * Marks the four cache breakpoints that Anthropic has: after the instructions, after the last words of people, at the
 * end of the request before this one, and at the end. It finds what it keeps at most twenty blocks before one.
 */
const mark = (messages: Message[]): void => {
  const turns = messages.flatMap(({ role }, at) => (role === 'user' ? [at] : []))
  const answered = messages.findLastIndex(({ role }) => role === 'assistant')
  const places = new Set([0, turns.at(-1), answered > 1 ? answered - 1 : undefined, messages.length - 1])
  for (const at of places) {
    const message = at === undefined ? undefined : messages[at]
    if (message && at !== undefined) messages[at] = { ...message, providerOptions: CACHED }
  }
}
