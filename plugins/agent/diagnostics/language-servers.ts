import { access as reached } from 'node:fs/promises'
import { join } from 'node:path'
import { pace } from '../../../sdk/node/concurrency/pace.js'
import { ownProgram } from '../../../sdk/node/programs/run.js'
import type { Walled } from '../../../sdk/node/wall/wall.js'
import { serverLanguage, type Language } from './languages.js'
import { LanguageServer, type Problem } from './language-server.js'

/** How long an edit waits for a server: longer while that starts. */
const PATIENCE = { firstMs: 15_000, laterMs: 4_000 }
const IDLE_MS = 10 * 60_000
/** So often a server may fail to answer before it is given up for a while. */
const MOST_FAILED = 3
const MOST_RUNNING = 12
const MOST_TEXT = 1024 * 1024
const MOST_SHOWN = 20
/** All servers together: what they write is read between everything else that the daemon does. */
const MOST_A_SECOND = 8 * 1024 * 1024

/** Where a changed file lies, and how a server for it starts. */
export interface ChangedFile {
  readonly conversationId: string
  /** The path from the root of the tree. */
  readonly path: string
  readonly text: string
  /** The repository, by its path from the root of the tree; `.`: the root. */
  readonly repository: string
  /** The root of the tree, on this machine and behind the wall. */
  readonly root: string
  readonly seenRoot: string
  /** Whose programs share a server. */
  readonly access: string
  readonly walled: (command: string, folder: string) => Promise<Walled>
}

interface Kept {
  readonly conversationId: string
  readonly access: string
  readonly server: LanguageServer
  idle?: NodeJS.Timeout
  answered: boolean
  failed: number
}

/** The language servers of conversations: one for each repository and language, which ends when nobody uses it. */
export class LanguageServers {
  readonly #kept = new Map<string, Kept>()
  /** Those that were given up, and until when. */
  readonly #givenUp = new Map<string, number>()
  readonly #patience: typeof PATIENCE
  readonly #paced = pace(MOST_A_SECOND)
  #closing = false

  constructor(patience = PATIENCE) {
    this.#patience = patience
  }

  /** What a model reads about the errors in a file that it changed; empty: there are none, or nobody knows. */
  async after(file: ChangedFile, signal: AbortSignal): Promise<string> {
    const { path, text, conversationId, repository } = file
    const found = serverLanguage(path)
    if (!found || this.#closing || text.length > MOST_TEXT) return ''
    const { language, id: languageId } = found
    const key = JSON.stringify([conversationId, repository, language.program])
    if ((this.#givenUp.get(key) ?? 0) > Date.now()) return ''
    const kept = await this.#serverOf(key, language, file)
    if (!kept) return ''
    clearTimeout(kept.idle)
    const checked = { seen: join(file.seenRoot, path), text, languageId }
    const { firstMs, laterMs } = this.#patience
    const problems = await kept.server.check(checked, kept.answered || kept.failed > 0 ? laterMs : firstMs, signal)
    clearTimeout(kept.idle)
    // Otherwise it was ended meanwhile, for another one or with its conversation.
    const isKept = this.#kept.get(key) === kept
    if (isKept) kept.idle = setTimeout(() => void this.#end(key, kept), IDLE_MS).unref()
    if (problems) {
      kept.answered = true
      kept.failed = 0
      return inWords(path, language.program, problems)
    }
    if (signal.aborted || !isKept) return ''
    kept.failed += 1
    if (!kept.server.over && kept.failed < MOST_FAILED) return ''
    this.#givenUp.set(key, Date.now() + IDLE_MS)
    const how = kept.server.over ? 'has ended' : 'does not answer'
    await this.#end(key, kept)
    return `\n[${language.program} ${how}, so errors of ${path} are not known]`
  }

  /** Ends those of a conversation, or those of them whose access `picks` says. */
  async end(conversationId: string, picks?: (access: string) => boolean): Promise<void> {
    const own = [...this.#kept].filter(
      ([, kept]) => kept.conversationId === conversationId && (picks?.(kept.access) ?? true),
    )
    await Promise.all(own.map(([key, kept]) => this.#end(key, kept)))
    if (picks) return
    for (const key of this.#givenUp.keys()) if (JSON.parse(key)[0] === conversationId) this.#givenUp.delete(key)
  }

  /** Ends all when the daemon stops. */
  async close(): Promise<void> {
    this.#closing = true
    await Promise.all([...this.#kept].map(([key, kept]) => this.#end(key, kept)))
  }

  async #serverOf(key: string, language: Language, file: ChangedFile): Promise<Kept | undefined> {
    const known = this.#kept.get(key)
    if (known && !known.server.over && known.access === file.access) {
      // Of too many the one ends that was not used for longest.
      this.#kept.delete(key)
      this.#kept.set(key, known)
      return known
    }
    if (known) await this.#end(key, known)
    const command = await programFor(language, file)
    if (command === undefined) return undefined
    const folder = file.repository === '.' ? file.root : join(file.root, file.repository)
    // Nobody reads its errors.
    const walled = await file.walled([command, ...language.args, '2>/dev/null'].join(' '), folder)
    const other = this.#kept.get(key)
    if (other) return other
    if (this.#closing) return undefined
    const server = new LanguageServer(walled, join(file.seenRoot, file.repository), this.#paced)
    const { conversationId, access } = file
    const kept: Kept = { conversationId, access, server, answered: false, failed: 0 }
    this.#kept.set(key, kept)
    const [oldest] = this.#kept
    if (this.#kept.size > MOST_RUNNING && oldest) void this.#end(...oldest)
    return kept
  }

  async #end(key: string, kept: Kept): Promise<void> {
    clearTimeout(kept.idle)
    if (this.#kept.get(key) === kept) this.#kept.delete(key)
    await kept.server.end()
  }
}

/** The program where it is installed: in the repository, or on this machine. */
const programFor = async (
  { program }: Language,
  { root, seenRoot, repository }: ChangedFile,
): Promise<string | undefined> => {
  const own = join(repository, 'node_modules/.bin', program)
  const isThere = await reached(join(root, own)).then(
    () => true,
    () => false,
  )
  if (isThere) return `exec ${quoted(join(seenRoot, own))}`
  return (await ownProgram(program)) === undefined ? undefined : `exec ${program}`
}

const quoted = (path: string): string => `'${path.replaceAll("'", String.raw`'\''`)}'`

const inWords = (path: string, program: string, problems: readonly Problem[]): string => {
  if (problems.length === 0) return ''
  const lines = problems.slice(0, MOST_SHOWN).map(({ line, column, text }) => `${path}:${line}:${column} ${text}`)
  const more = problems.length > MOST_SHOWN ? [`and ${problems.length - MOST_SHOWN} more`] : []
  return `\n[${program} finds errors in it:]\n${[...lines, ...more].join('\n')}`
}
