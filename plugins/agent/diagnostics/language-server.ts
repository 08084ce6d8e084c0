import { setTimeout as delay } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { ignored } from '../../../sdk/index.js'
import type { pace } from '../../../sdk/node/concurrency/pace.js'
import { PipedProcess } from '../../../sdk/node/programs/piped-process.js'
import type { Walled } from '../../../sdk/node/wall/wall.js'
import { framedMessage, framedMessages } from './framed-messages.js'

/** Servers send what they find in parts: first of the syntax, then of types. */
const SETTLES_MS = 300
const MOST_OPEN = 100
const MOST_PROBLEMS = 50
const MOST_WORDS = 400
/** A server that takes so little of what is written to it is stuck. */
const MOST_UNREAD = 16 * 1024 * 1024
/** The longest path of a file, with every byte escaped, is shorter. */
const MOST_URI = 16 * 1024

/** An error that a language server finds; lines and columns count from 1. */
export interface Problem {
  readonly line: number
  readonly column: number
  readonly text: string
}

/** A file as it is now, by its path behind the wall. */
export interface CheckedFile {
  readonly seen: string
  readonly text: string
  readonly languageId: string
}

interface Published {
  readonly version: number | undefined
  readonly problems: readonly Problem[]
  readonly at: number
}

interface Message {
  readonly id?: unknown
  readonly method?: unknown
  readonly params?: unknown
  readonly result?: unknown
}

/** A language server of one folder, behind a wall. */
export class LanguageServer {
  readonly #process: PipedProcess
  readonly #paced: ReturnType<typeof pace>
  /** What it was told of files, by their `placeOf`, the oldest first. */
  readonly #told = new Map<string, { readonly uri: string; readonly version: number }>()
  readonly #published = new Map<string, Published>()
  readonly #ready = Promise.withResolvers<void>()
  #news = Promise.withResolvers<void>()
  #over = false
  /** Resolves when it has ended. */
  readonly ended: Promise<void>

  /**
   * @param folder Its root, behind the wall.
   * @param paced The pace at which it is read.
   */
  constructor(command: Walled, folder: string, paced: ReturnType<typeof pace>) {
    this.#process = new PipedProcess(command)
    this.#paced = paced
    const uri = pathToFileURL(folder).href
    this.#send({
      id: 1,
      method: 'initialize',
      params: {
        processId: null,
        rootUri: uri,
        workspaceFolders: [{ uri, name: 'workspace' }],
        capabilities: {
          textDocument: { publishDiagnostics: { versionSupport: true }, synchronization: { didSave: true } },
          workspace: { configuration: true, workspaceFolders: true },
        },
      },
    })
    this.ended = Promise.all([this.#process.ended, this.#read()]).then(() => {})
    void this.#process.ended.then(() => this.#stop())
  }

  get over(): boolean {
    return this.#over
  }

  /** The errors that it finds in a file as it is now; undefined: it does not say in time. */
  async check(
    { seen, text, languageId }: CheckedFile,
    ms: number,
    signal: AbortSignal,
  ): Promise<readonly Problem[] | undefined> {
    const until = performance.now() + ms
    const late = AbortSignal.any([signal, AbortSignal.timeout(ms)])
    const lateOver = new Promise<void>(resolve => late.addEventListener('abort', () => resolve(), { once: true }))
    await Promise.race([this.#ready.promise, lateOver])
    if (late.aborted || this.#over) return undefined
    const uri = pathToFileURL(seen).href
    const place = placeOf(uri)
    if (place === undefined) return undefined
    const version = (this.#told.get(place)?.version ?? 0) + 1
    this.#tell(place, { uri, version }, text, languageId)
    for (;;) {
      const found = this.#published.get(place)
      const fits = found && (found.version === undefined || found.version >= version) ? found : undefined
      const settled = fits ? fits.at + SETTLES_MS - performance.now() : Infinity
      if (fits && (settled <= 0 || late.aborted || performance.now() >= until)) return fits.problems
      if (late.aborted || this.#over) return undefined
      const pause = Number.isFinite(settled) ? [delay(settled, undefined, { ref: false })] : []
      await Promise.race([this.#news.promise, lateOver, ...pause])
    }
  }

  /** Ends it. */
  async end(): Promise<void> {
    this.#stop()
    await this.#process.end('at once')
  }

  #tell(place: string, textDocument: { uri: string; version: number }, text: string, languageId: string): void {
    const { uri, version } = textDocument
    this.#published.delete(place)
    this.#told.delete(place)
    this.#told.set(place, textDocument)
    if (version === 1)
      this.#send({ method: 'textDocument/didOpen', params: { textDocument: { ...textDocument, languageId, text } } })
    else this.#send({ method: 'textDocument/didChange', params: { textDocument, contentChanges: [{ text }] } })
    this.#send({ method: 'textDocument/didSave', params: { textDocument: { uri } } })
    const [oldest] = this.#told
    if (this.#told.size <= MOST_OPEN || !oldest) return
    this.#told.delete(oldest[0])
    this.#published.delete(oldest[0])
    this.#send({ method: 'textDocument/didClose', params: { textDocument: { uri: oldest[1].uri } } })
  }

  async #read(): Promise<void> {
    const paced = this.#paced
    const slowly = async function* (output: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
      for await (const piece of output) {
        yield piece
        await paced(piece.length)
      }
    }
    try {
      for await (const message of framedMessages(slowly(this.#process.output as AsyncIterable<Buffer>)))
        this.#hear(message)
    } catch {
      // It speaks no such protocol, or was ended.
      await this.end().catch(ignored('it has ended'))
    }
  }

  #hear({ id, method, params, result }: Message): void {
    if (method === undefined) {
      if (id !== 1 || result === undefined) return
      this.#send({ method: 'initialized', params: {} })
      this.#ready.resolve()
    } else if (method === 'textDocument/publishDiagnostics') this.#publish(params)
    // Servers wait for answers to their requests: nothing is configured here.
    else if (typeof id === 'number' || typeof id === 'string')
      this.#send({ id, result: method === 'workspace/configuration' ? settingsFor(params) : null })
  }

  #publish(params: unknown): void {
    const { uri, version, diagnostics } = (params ?? {}) as { [field: string]: unknown }
    // Of files that nobody asked about nothing is kept.
    if (typeof uri !== 'string' || !Array.isArray(diagnostics)) return
    const place = placeOf(uri)
    if (place === undefined || !this.#told.has(place)) return
    const problems = diagnostics.flatMap(problemOf).slice(0, MOST_PROBLEMS)
    const of = typeof version === 'number' ? version : undefined
    this.#published.set(place, { version: of, problems, at: performance.now() })
    this.#wake()
  }

  #send(message: object): void {
    const { input } = this.#process
    if (this.#over || input.destroyed || input.writableEnded) return
    if (input.writableLength > MOST_UNREAD) return void this.end().catch(ignored('it has ended'))
    input.write(framedMessage(message))
  }

  #stop(): void {
    this.#over = true
    this.#ready.resolve()
    this.#wake()
  }

  #wake(): void {
    this.#news.resolve()
    this.#news = Promise.withResolvers()
  }
}

/** An address without its escapes, which each server writes in its own way; undefined: it names no file. */
const placeOf = (uri: string): string | undefined => {
  try {
    return uri.length > MOST_URI ? undefined : decodeURIComponent(uri)
  } catch {
    return undefined
  }
}

const settingsFor = (params: unknown): null[] => {
  const { items } = (params ?? {}) as { items?: unknown }
  return Array.isArray(items) ? items.slice(0, 100).map(() => null) : []
}

const ERROR = 1

const problemOf = (value: unknown): Problem[] => {
  const { severity = ERROR, message, range } = (value ?? {}) as { [field: string]: unknown }
  const { line, character } = ((range ?? {}) as { start?: { line?: unknown; character?: unknown } }).start ?? {}
  if (severity !== ERROR || typeof message !== 'string' || typeof line !== 'number') return []
  const text = message
    .replace(/[\x00-\x1f\x7f]+/g, ' ')
    .slice(0, MOST_WORDS)
    .toWellFormed()
  return [{ line: line + 1, column: typeof character === 'number' ? character + 1 : 1, text }]
}
