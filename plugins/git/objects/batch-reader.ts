import { PipedProcess } from '../../../sdk/node/programs/piped-process.js'
import { GitFailure, residentGit } from '../../../sdk/node/programs/git.js'

/** An object; `bytes` is left out if it is larger than requested. */
export interface GitObject {
  readonly id: string
  readonly type: string
  readonly size: number
  readonly bytes?: Buffer
}

/** The result of a name: an object, none, or more than one. */
export type FoundObject = GitObject | 'missing' | 'ambiguous'

interface Asked {
  readonly name: string
  readonly most: number
  readonly resolve: (found: FoundObject) => void
  readonly reject: (error: Error) => void
}

const NEWLINE = 10
const MOST_HEADER = 16_384
/** Git streams blobs larger than this instead of holding them in memory. */
const STREAMED = 'core.bigFileThreshold=1m'

/** One resident `git cat-file --batch`: objects by name, in request order, each held only up to a limit. */
export class BatchReader {
  readonly #process: PipedProcess
  readonly #asked: Asked[] = []
  #header: Buffer = Buffer.alloc(0)
  #object: { id: string; type: string; size: number } | undefined
  #parts: Buffer[] = []
  #left = 0

  private constructor(process: PipedProcess) {
    this.#process = process
    process.output.on('data', (piece: Buffer) => this.#take(piece))
    void process.ended.then(how => {
      const code = Number(/exit code (\d+)/.exec(how)?.[1] ?? 1)
      const failure = new GitFailure('cat-file', code, process.errors || how)
      for (const { reject } of this.#asked.splice(0)) reject(failure)
    })
  }

  /** Starts one for a repository; `env` names its folders. */
  static async open(dir: string, env: { readonly [name: string]: string }): Promise<BatchReader> {
    const command = await residentGit(dir, ['-c', STREAMED, 'cat-file', '--batch'], env)
    return new BatchReader(new PipedProcess({ ...command, enforced: false }, 'own'))
  }

  /** How it ended. */
  get ended(): Promise<string> {
    return this.#process.ended
  }

  /** Reads the object of a name without line breaks; its content only up to `most` bytes. */
  read(name: string, most: number): Promise<FoundObject> {
    if (/[\n\0]/.test(name)) throw new Error('expected the name of an object without line breaks')
    const { promise, resolve, reject } = Promise.withResolvers<FoundObject>()
    if (this.#process.over) reject(new Error('git cat-file has ended'))
    else this.#asked.push({ name, most, resolve, reject })
    this.#process.input.write(`${name}\n`)
    return promise
  }

  end(): Promise<void> {
    return this.#process.end('at once')
  }

  #take(piece: Buffer): void {
    let rest = piece
    while (rest.length > 0 && this.#asked.length > 0) rest = this.#object ? this.#content(rest) : this.#head(rest)
  }

  #head(piece: Buffer): Buffer {
    const end = piece.indexOf(NEWLINE)
    this.#header = Buffer.concat([this.#header, end < 0 ? piece : piece.subarray(0, end)])
    if (this.#header.length > MOST_HEADER) {
      void this.#process.end('at once')
      return Buffer.alloc(0)
    }
    if (end < 0) return Buffer.alloc(0)
    const line = this.#header.toString()
    this.#header = Buffer.alloc(0)
    const [, id = '', type = '', size = ''] = /^([0-9a-f]{40,64}) (\w+) (\d+)$/.exec(line) ?? []
    if (id === '') this.#asked.shift()!.resolve(line.endsWith(' ambiguous') ? 'ambiguous' : 'missing')
    else {
      this.#object = { id, type, size: Number(size) }
      // A line break follows the content.
      this.#left = Number(size) + 1
    }
    return piece.subarray(end + 1)
  }

  #content(piece: Buffer): Buffer {
    const { most, resolve } = this.#asked[0]!
    const object = this.#object!
    const part = piece.subarray(0, this.#left)
    if (object.size <= most) this.#parts.push(part)
    this.#left -= part.length
    if (this.#left === 0) {
      this.#asked.shift()
      this.#object = undefined
      const bytes = object.size <= most ? Buffer.concat(this.#parts).subarray(0, object.size) : undefined
      this.#parts = []
      resolve({ ...object, ...(bytes && { bytes }) })
    }
    return piece.subarray(part.length)
  }
}
