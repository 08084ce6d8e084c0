import type { MaskedText } from './masked-text.js'

/** What is kept of a masked text, so that it is not searched again when it is sent again. */
export interface KeptText extends Omit<MaskedText, 'places'> {
  /** Words of what a policy refuses; with one, the text is never sent. */
  readonly refused: readonly string[]
}

interface Kept {
  readonly texts: Map<string, KeptText>
  size: number
}

const MOST_OF_ONE = 16 * 1024 * 1024
const MOST_OF_ALL = 64 * 1024 * 1024

/** Masked texts by conversation, bounded in characters; the conversations used last stay. */
export class MaskCache {
  readonly #kept = new Map<string, Kept>()
  #revision = ''
  #size = 0

  /** What is kept of a conversation under a revision of policy and secrets. */
  of(conversationId: string, revision: string): Pick<Map<string, KeptText>, 'get' | 'set'> {
    if (revision !== this.#revision) this.#clear(revision)
    const kept = this.#kept.get(conversationId) ?? { texts: new Map<string, KeptText>(), size: 0 }
    this.#kept.delete(conversationId)
    this.#kept.set(conversationId, kept)
    const set = (text: string, value: KeptText) => {
      this.#grow(kept, text.length + value.masked.length)
      return kept.texts.set(text, value)
    }
    return { get: text => kept.texts.get(text), set }
  }

  /** Forgets the texts of a conversation. */
  drop(conversationId: string): void {
    this.#size -= this.#kept.get(conversationId)?.size ?? 0
    this.#kept.delete(conversationId)
  }

  #grow(kept: Kept, by: number): void {
    kept.size += by
    this.#size += by
    for (const [text, { masked }] of kept.texts) {
      if (kept.size <= MOST_OF_ONE) break
      kept.texts.delete(text)
      kept.size -= text.length + masked.length
      this.#size -= text.length + masked.length
    }
    for (const id of this.#kept.keys()) {
      if (this.#size <= MOST_OF_ALL || this.#kept.size === 1) break
      this.drop(id)
    }
  }

  #clear(revision: string): void {
    this.#kept.clear()
    this.#size = 0
    this.#revision = revision
  }
}
