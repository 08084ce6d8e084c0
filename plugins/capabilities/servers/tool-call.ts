import type { CallToolResult, Progress } from '@modelcontextprotocol/client'
import { Refusal } from '../../../sdk/index.js'
import { Inbox } from '../../../sdk/node/concurrency/inbox.js'
import type { ToolAnswered, ToolAsked, ToolElicits, ToolPicture, ToolProgress } from '../contract.js'
import type { OpenEntry } from '../records/kinds.js'
import { masked } from '../records/masking.js'
import { timeoutOf } from './config.js'
import type { ServerConnection } from './connection.js'
import type { AskingCall } from './elicitations.js'
import type { ServerSessions } from './sessions.js'
import type { TurnTools } from './turn-tools.js'

const MOST_TEXT = 1024 * 1024
const MOST_PICTURES = 10
const MOST_PICTURE = 8 * 1024 * 1024
const MOST_STRUCTURED = 1024 * 1024
const MOST_PROGRESS = 1000
/** The library's own limit is out of the way: a call may wait for a person. */
const DAY_MS = 86_400_000
/** A call may last so many times as long as it may be silent; time in which it waits for a person does not count. */
const MOST_SILENCES = 60

type CallEvent = ToolProgress | ToolElicits | ToolAnswered

const failed = (text: string): ToolAnswered => ({ kind: 'result', ok: false, text })

/** Calls a tool that the turn was offered: its progress, the questions of its server, and last its answer. */
export async function* callTool(
  { turns, sessions }: { readonly turns: TurnTools; readonly sessions: ServerSessions },
  asked: ToolAsked,
  signal: AbortSignal,
): AsyncGenerator<CallEvent, void> {
  const { offers } = await turns.of(asked)
  const offer = offers.find(({ tool }) => tool.server === asked.server && tool.name === asked.name)
  if (!offer) return yield failed(`no such tool: ${asked.server} offers no ${JSON.stringify(asked.name.slice(0, 128))}`)
  const left = new AbortController()
  const call = new RunningCall(asked, offer.entry, sessions, AbortSignal.any([signal, left.signal]))
  try {
    for await (const event of call.events) yield event
  } finally {
    left.abort()
  }
}

/** One call while it runs. */
class RunningCall implements AskingCall {
  readonly events = new Inbox<CallEvent>({ full: Infinity, room: 0, pause: () => {}, resume: () => {} })
  readonly #asked: ToolAsked
  readonly #entry: OpenEntry
  readonly #sessions: ServerSessions
  readonly #signal: AbortSignal
  readonly #silent = new AbortController()
  readonly #over = new AbortController()
  #timer: NodeJS.Timeout | undefined
  /** Since when it works; undefined: it waits for a person, or has not begun. */
  #since: number | undefined
  #workedMs = 0
  #questions = 0
  #progress = 0

  constructor(asked: ToolAsked, entry: OpenEntry, sessions: ServerSessions, signal: AbortSignal) {
    this.#asked = asked
    this.#entry = entry
    this.#sessions = sessions
    this.#signal = AbortSignal.any([signal, this.#silent.signal])
    void this.#run()
      .catch((error: unknown) => failed(this.#sentence(error)))
      .then(answer => {
        this.#over.abort()
        clearTimeout(this.#timer)
        this.events.put(answer)
        this.events.end()
      })
  }

  get over(): AbortSignal {
    return this.#over.signal
  }

  ask(question: ToolElicits): void {
    this.#questions++
    this.#listen()
    this.events.put(question)
  }

  settled(): void {
    this.#questions--
    this.#listen()
  }

  async #run(): Promise<ToolAnswered> {
    const { conversationId } = this.#asked
    const connection = await this.#sessions.get(conversationId, this.#entry)
    try {
      return await this.#on(connection)
    } catch (error) {
      if (this.#signal.aborted || connection.answered(error)) throw error
      // Read before the connection is closed, which hides why the server ended.
      const failure = await connection.failure(error)
      await this.#sessions.drop(conversationId, this.#entry.id, connection)
      if (!connection.forgotten(error)) throw failure
      return this.#on(await this.#sessions.get(conversationId, this.#entry))
    }
  }

  async #on(connection: ServerConnection): Promise<ToolAnswered> {
    const { conversationId, server, name, input } = this.#asked
    const over = this.#sessions.calling(conversationId, server, this)
    this.#listen()
    try {
      const result = await connection.client.callTool(
        { name, arguments: input },
        { signal: this.#signal, timeout: DAY_MS, onprogress: progress => this.#heard(progress) },
      )
      return toolAnswerOf(result)
    } finally {
      over()
    }
  }

  #heard({ progress, total, message }: Progress): void {
    this.#listen()
    if (++this.#progress > MOST_PROGRESS) return
    const share = total === undefined ? String(progress) : `${progress} of ${total}`
    this.events.put({ kind: 'progress', message: (message ?? share).slice(0, 1000).toWellFormed() })
  }

  /** A call that waits for a person is not silent, and one that reports progress for ever ends all the same. */
  #listen(): void {
    const now = performance.now()
    if (this.#since !== undefined) this.#workedMs += now - this.#since
    clearTimeout(this.#timer)
    this.#since = this.#questions > 0 ? undefined : now
    if (this.#since === undefined) return
    const silence = timeoutOf(this.#entry.config)
    const left = silence * MOST_SILENCES - this.#workedMs
    const why = left < silence ? `lasted ${(silence * MOST_SILENCES) / 1000} s` : `gave no sign for ${silence / 1000} s`
    this.#timer = setTimeout(() => this.#silent.abort(why), Math.max(0, Math.min(silence, left)))
  }

  #sentence(error: unknown): string {
    const { server, name } = this.#asked
    if (this.#silent.signal.aborted)
      return `${name} of ${server} ${String(this.#silent.signal.reason)} and was cancelled`
    if (this.#signal.aborted) return `${name} of ${server} was cancelled`
    if (error instanceof Refusal) return error.message
    return masked(`${name} of ${server} failed: ${(error as Error).message}`, this.#entry.secrets)
  }
}

const cut = (text: string): string =>
  text.length > MOST_TEXT
    ? `${text.slice(0, MOST_TEXT).toWellFormed()}\n[${text.length - MOST_TEXT} characters more were left out]`
    : text.toWellFormed()

/** A server's answer as a turn gets it. */
export const toolAnswerOf = ({ content = [], structuredContent, isError }: CallToolResult): ToolAnswered => {
  const pictures: ToolPicture[] = []
  const texts: string[] = []
  for (const block of content)
    switch (block.type) {
      case 'text':
        texts.push(block.text)
        break
      case 'image':
        if (pictures.length < MOST_PICTURES && block.data.length <= MOST_PICTURE)
          pictures.push({ data: block.data, mime: block.mimeType })
        else texts.push('[a picture was left out: there are too many, or it is too large]')
        break
      case 'audio':
        texts.push(`[a sound of type ${block.mimeType} was left out]`)
        break
      case 'resource_link':
        texts.push(`${block.title ?? block.name}: ${block.uri}`)
        break
      case 'resource':
        texts.push('text' in block.resource ? block.resource.text : `[${block.resource.uri}: not text]`)
        break
    }
  const structured = structuredContent as ToolAnswered['structured']
  const fits = structured !== undefined && JSON.stringify(structured).length <= MOST_STRUCTURED
  if (structured !== undefined && texts.length === 0) texts.push(JSON.stringify(structured))
  return {
    kind: 'result',
    ok: isError !== true,
    text: cut(texts.join('\n')),
    ...(fits && { structured }),
    ...(pictures.length > 0 && { pictures }),
  }
}
