import { readdir, rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { Refusal, ignored } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { contains, inside } from '../../../sdk/node/files/paths.js'
import type { Engine } from '../turn/engine.js'
import type { Queue } from '../queue/queue.js'
import type { Row } from '../turn/run-record.js'
import type { Conversations } from './conversations.js'
import { ATTACHMENTS } from './attachments.js'
import type { Transcripts } from './transcripts.js'

/** The dependencies of the files of records. */
export interface RecordFilesDeps {
  readonly workspace: string
  readonly conversations: Pick<Conversations, 'recorded'>
  readonly transcripts: Pick<Transcripts, 'attachments' | 'lines' | 'remove'>
  readonly queue: Pick<Queue, 'waiting' | 'resumable'>
  readonly engine: Pick<Engine, 'live'>
}

const ALL = 'all'
const UNSENT_MS = 7 * 86_400_000

/** Deletes the files of records. */
export class RecordFiles {
  readonly #deps: RecordFilesDeps
  readonly #locks = new KeyedMutex()

  constructor(deps: RecordFilesDeps) {
    this.#deps = deps
  }

  /** Deletes a transcript, and the uploaded attachments that no other record refers to; can be repeated. */
  remove(id: string): Promise<void> {
    return this.#locks.with(ALL, async () => {
      const { conversations, transcripts } = this.#deps
      const others = conversations.recorded.flatMap(other => (other.id === id ? [] : [other.id]))
      const unshared = await transcripts.attachments.of(id, others, each => this.#rows(each))
      if (unshared.size > 0) for (const path of others.flatMap(other => this.#pending(other))) unshared.delete(path)
      for (const path of unshared) await this.#removeFile(path)
      // Last: without its record nothing says which files are its own.
      await transcripts.remove(id)
    })
  }

  /** Deletes attachments that were uploaded more than a week ago and that no message has; can be repeated. */
  sweep(now = Date.now()): Promise<void> {
    return this.#locks.with(ALL, async () => {
      const old = await this.#uploadedBefore(now - UNSENT_MS)
      if (old.length === 0) return
      const { conversations, transcripts } = this.#deps
      const ids = conversations.recorded.map(({ id }) => id)
      const sent = await transcripts.attachments.all(ids, id => this.#rows(id))
      const pending = new Set(ids.flatMap(id => this.#pending(id)))
      for (const path of old) if (!sent.has(path) && !pending.has(path)) await this.#removeFile(path)
    })
  }

  async #uploadedBefore(time: number): Promise<string[]> {
    const root = await inside(this.#deps.workspace, ATTACHMENTS).catch(() => undefined)
    if (root === undefined) return []
    const entries = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => [])
    const found: string[] = []
    for (const entry of entries) {
      if (!entry.isFile()) continue
      const file = join(entry.parentPath, entry.name)
      // An upload sets the time of change to that of the person's file; nothing sets this one.
      const { ctimeMs } = await stat(file).catch(() => ({ ctimeMs: Infinity }))
      if (ctimeMs < time) found.push(join(ATTACHMENTS, relative(root, file)))
    }
    return found
  }

  async #rows(id: string): Promise<readonly Row[]> {
    return (await this.#deps.transcripts.lines(id, 0)).flatMap(({ rows }) => rows)
  }

  /** The attachments of messages that no transcript has yet. */
  #pending(id: string): readonly string[] {
    const { engine, queue } = this.#deps
    const messages = [engine.live(id)?.message, queue.resumable(id)?.message, ...queue.waiting(id)]
    const said = engine.live(id)?.record.rows ?? []
    return [...messages.map(message => message?.input), ...said].flatMap(each => each?.attachments ?? [])
  }

  async #removeFile(path: string): Promise<void> {
    const { workspace } = this.#deps
    try {
      const [root, file] = [await inside(workspace, ATTACHMENTS), await inside(workspace, path)]
      if (!contains(root, file) || file === root) return
      await rm(file, { force: true })
      const folder = dirname(file)
      if (folder !== root) await rmdir(folder).catch(ignored('a folder with other files stays'))
    } catch (error) {
      if (!(error instanceof Refusal && error.reason === 'not-found')) throw error
    }
  }
}
