import { hash } from 'node:crypto'
import { posix } from 'node:path'

const MOST = 10_000

/** What a model knows of files: the content that it last read or wrote, by path. */
export class KnownFiles {
  readonly #hashes = new Map<string, string>()

  /** The model has seen this content. */
  note(path: string, bytes: Uint8Array): void {
    const name = posix.normalize(path)
    this.#hashes.delete(name)
    this.#hashes.set(name, hash('sha256', bytes))
    if (this.#hashes.size > MOST) this.#hashes.delete(this.#hashes.keys().next().value!)
  }

  /** Whether it knows the content that is there: `changed` since it saw it, or `unread`. */
  state(path: string, bytes: Uint8Array): 'known' | 'changed' | 'unread' {
    const known = this.#hashes.get(posix.normalize(path))
    if (known === undefined) return 'unread'
    return known === hash('sha256', bytes) ? 'known' : 'changed'
  }

  /** It made a change to content that it knew, or a new file. */
  changed(path: string, before: Uint8Array | undefined, after: Uint8Array): void {
    if (before === undefined || this.state(path, before) === 'known') this.note(path, after)
  }
}
