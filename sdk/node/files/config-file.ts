import { constants, type Stats } from 'node:fs'
import { lstat, mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'
import { Refusal } from '../../refusal.js'
import { isClosed, isFull } from './disk.js'
import { sweepTemporary, writeAtomic } from './files.js'
import { codeOf } from './paths.js'

const FOLDERS = ['.sandbox', '.sandbox/config']
const MOST_BYTES = 256 * 1024

/** What the file holds: keys as they were written, whatever they are. */
export interface KeptConfig {
  readonly keys: { readonly [key: string]: unknown }
  /** Permission bits, for the next write. */
  readonly mode: number
  /** Why it cannot be used as it stands, as a sentence for the person who wrote it. */
  readonly wrong?: string
}

const NOTHING: KeptConfig = { keys: {}, mode: 0o644 }
const unusable = (wrong: string): KeptConfig => ({ ...NOTHING, wrong })

/** Failures caused by the file or its path; all others are temporary. */
const CLOSED = new Set(['EACCES', 'EPERM', 'ELOOP', 'ENOTDIR', 'ENXIO', 'EISDIR'])

/**
 * A file of settings in the workspace, which holds a JSON object: read with care, since anybody may have written it,
 * and written in one step.
 */
export class ConfigFile {
  readonly #workspace: string
  readonly #name: string
  readonly #what: string
  readonly #write: typeof writeAtomic

  /** The file by its path from the workspace, and what it holds, in the plural. */
  constructor(workspace: string, name: string, what: string, write = writeAtomic) {
    this.#workspace = workspace
    this.#name = name
    this.#what = what
    this.#write = write
  }

  /** What is kept now; nothing when there is no file. */
  async load(): Promise<KeptConfig> {
    try {
      const wrong = await this.#wrongFolder()
      return wrong === undefined ? await this.#read() : unusable(wrong)
    } catch (error) {
      const code = codeOf(error) ?? ''
      if (code === 'ENOENT') return NOTHING
      if (code === 'ELOOP') return unusable(`${this.#name} is a link: put a file of the workspace itself in its place`)
      if (CLOSED.has(code))
        return unusable(`${this.#name} cannot be read (${code}): make it a file that the sandbox may read`)
      throw error
    }
  }

  /** Replaces the whole file; it is on the disk when this returns. */
  async save({ keys, mode }: KeptConfig): Promise<void> {
    const text = `${JSON.stringify(keys, undefined, 2)}\n`
    const size = Buffer.byteLength(text)
    // A larger file would not be read again.
    if (size > MOST_BYTES)
      throw new Refusal('too-large', `the ${this.#what} would have ${size} bytes: expected at most ${MOST_BYTES}`)
    try {
      for (const folder of FOLDERS) await this.#makeFolder(folder)
      await this.#write(join(this.#workspace, this.#name), text, { mode, flush: true })
    } catch (error) {
      throw this.#asRefusal(error)
    }
  }

  /** Removes the temporary files of interrupted writes. */
  async sweep(): Promise<void> {
    if ((await this.#wrongFolder()) !== undefined) return
    await sweepTemporary(join(this.#workspace, FOLDERS.at(-1)!))
  }

  async #read(): Promise<KeptConfig> {
    // Without blocking, because opening a pipe of this name would wait.
    const handle = await open(
      join(this.#workspace, this.#name),
      constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    )
    try {
      const found = await handle.stat()
      if (!found.isFile()) return unusable(`${this.#name} is no file: remove what is there`)
      if (found.size > MOST_BYTES)
        return unusable(`${this.#name} has ${found.size} bytes: expected at most ${MOST_BYTES}`)
      const keys = parse(await handle.readFile())
      return keys
        ? { keys, mode: found.mode & 0o777 }
        : unusable(`${this.#name} does not hold a JSON object: mend it by hand, or remove it`)
    } finally {
      await handle.close()
    }
  }

  /** Why the file's path leaves the workspace; a missing folder can be created. */
  async #wrongFolder(): Promise<string | undefined> {
    for (const folder of FOLDERS) {
      const found = await lstat(join(this.#workspace, folder)).catch(absent)
      if (!found?.isDirectory()) return found && notFolder(folder, found)
    }
    return undefined
  }

  async #makeFolder(folder: string): Promise<void> {
    const path = join(this.#workspace, folder)
    await mkdir(path).catch(error => {
      if (codeOf(error) !== 'EEXIST') throw error
    })
    const found = await lstat(path)
    if (!found.isDirectory()) throw new Refusal('unprocessable', notFolder(folder, found))
  }

  /** A write that failed, as its caller should see it: a full disk and a closed folder are no bugs. */
  #asRefusal(error: unknown): unknown {
    if (isFull(error))
      return new Refusal(
        'too-large',
        `the disk is full and the ${this.#what} stay as they were: free some space and try again`,
        { cause: error },
      )
    if (isClosed(error))
      return new Refusal(
        'dependency',
        `${this.#name} could not be written (${codeOf(error)}), so nothing was: `
          + 'open its folder for writing and try again',
        { cause: error },
      )
    // Its folders are made where they are missing, so what is missing is the workspace.
    if (codeOf(error) === 'ENOENT')
      return new Refusal(
        'dependency',
        `${this.#name} could not be written: the workspace is gone; bring it back and try again`,
        { cause: error },
      )
    return error
  }
}

const absent = (error: unknown): undefined => {
  if (codeOf(error) !== 'ENOENT') throw error
  return undefined
}

const notFolder = (folder: string, found: Stats): string =>
  `${folder} is ${found.isSymbolicLink() ? 'a link' : 'no folder'}: put a folder of the workspace itself in its place`

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Parses an object, if it can be written back unchanged. */
const parse = (bytes: Uint8Array): KeptConfig['keys'] | undefined => {
  try {
    const value: unknown = JSON.parse(utf8.decode(bytes))
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    JSON.stringify(value)
    return value as KeptConfig['keys']
  } catch {
    return undefined
  }
}
