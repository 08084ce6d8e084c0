import { hash } from 'node:crypto'
import { posix } from 'node:path'

const MOST_FILES = 10_000
const MOST_CONVERSATIONS = 500

/** What a model knows of files: the content that it last read or wrote, by path. */
export class KnownFiles {
  readonly #hashes = new Map<string, string>()

  /** The model has seen this content. */
  note(path: string, bytes: Uint8Array): void {
    const name = posix.normalize(path)
    this.#hashes.delete(name)
    this.#hashes.set(name, hash('sha256', bytes))
    if (this.#hashes.size > MOST_FILES) this.#hashes.delete(this.#hashes.keys().next().value!)
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

/** What the models of conversations know of files: of those that ran last. */
export class KnownByConversation {
  readonly #known = new Map<string, KnownFiles>()

  of(conversationId: string): KnownFiles {
    const known = this.#known.get(conversationId) ?? new KnownFiles()
    this.#known.delete(conversationId)
    this.#known.set(conversationId, known)
    if (this.#known.size > MOST_CONVERSATIONS) this.#known.delete(this.#known.keys().next().value!)
    return known
  }
}
