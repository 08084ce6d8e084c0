import { rm, rmdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Refusal } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { contains, inside } from '../../../sdk/node/files/paths.js'
import type { Engine } from '../turn/engine.js'
import type { Queue } from '../queue/queue.js'
import type { Conversations } from './conversations.js'
import type { Transcripts } from './transcripts.js'

/** The dependencies of the files of records. */
export interface RecordFilesDeps {
  readonly workspace: string
  readonly conversations: Pick<Conversations, 'recorded'>
  readonly transcripts: Pick<Transcripts, 'lines' | 'remove'>
  readonly queue: Pick<Queue, 'waiting' | 'resumable'>
  readonly engine: Pick<Engine, 'live'>
}

/** Where people upload attachments. */
const ATTACHMENTS = '.sandbox/records/artifacts/attachments'
const ALL = 'all'

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
      const unshared = new Set((await this.#recorded(id)).filter(path => path.startsWith(`${ATTACHMENTS}/`)))
      for (const other of this.#deps.conversations.recorded) {
        if (unshared.size === 0) break
        if (other.id === id) continue
        for (const path of [...(await this.#recorded(other.id)), ...this.#pending(other.id)]) unshared.delete(path)
      }
      for (const path of unshared) await this.#removeFile(path)
      // Last: the transcript names the attachments.
      await this.#deps.transcripts.remove(id)
    })
  }

  async #recorded(id: string): Promise<string[]> {
    const lines = await this.#deps.transcripts.lines(id, 0)
    return lines.flatMap(({ rows }) => rows.flatMap(({ attachments = [] }) => attachments))
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
      // A folder with other files stays.
      if (folder !== root) await rmdir(folder).catch(() => {})
    } catch (error) {
      if (!(error instanceof Refusal && error.reason === 'not-found')) throw error
    }
  }
}
