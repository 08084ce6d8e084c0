/** Stored documents by id. Each is parsed when it is first read: a start loads thousands that nobody asks for. */
export class LazyDocuments<T extends object> {
  readonly #kept = new Map<string, T | string>()

  /** Adds documents as JSON text; the id is the key without this prefix. */
  load(texts: Iterable<readonly [key: string, json: string]>, prefix = ''): void {
    for (const [key, json] of texts) this.#kept.set(key.slice(prefix.length), json)
  }

  get size(): number {
    return this.#kept.size
  }

  has(id: string): boolean {
    return this.#kept.has(id)
  }

  get(id: string): T | undefined {
    const kept = this.#kept.get(id)
    if (typeof kept !== 'string') return kept
    const document = JSON.parse(kept) as T
    this.#kept.set(id, document)
    return document
  }

  set(id: string, document: T): void {
    this.#kept.set(id, document)
  }

  delete(id: string): boolean {
    return this.#kept.delete(id)
  }

  keys(): Iterable<string> {
    return this.#kept.keys()
  }

  *values(): Generator<T> {
    for (const [, document] of this) yield document
  }

  *[Symbol.iterator](): Generator<[id: string, document: T]> {
    for (const id of this.#kept.keys()) yield [id, this.get(id)!]
  }

  /** The documents that may have a field: those whose text has its name, and those parsed before. */
  *withField(name: string): Generator<[id: string, document: T]> {
    const quoted = JSON.stringify(name)
    for (const [id, kept] of this.#kept)
      if (typeof kept !== 'string' || kept.includes(quoted)) yield [id, this.get(id)!]
  }
}
