import { constants } from 'node:fs'
import { mkdir, open, rename, rm, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { codeOf } from '../files/paths.js'

const MIB = 1024 * 1024
/** Nobody else's link or pipe is written to. */
const APPEND = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** How a log rotates and what it says of lines that were lost. */
export interface RotatingOptions {
  /** Bytes after which the file is moved to `.1`. */
  readonly most?: number
  /** Bytes of lines that may wait to be written; more are dropped. */
  readonly backlog?: number
  /** The line that says how many were dropped. */
  readonly lost?: (lines: number, why: string) => string
}

/** How many older files of a log stay, `.1` the newest of them. */
export const KEPT = 2

const openNow = new Set<string>()

/** Whether this process writes to a log now. */
export const isLive = (path: string): boolean => openNow.has(path)

/**
 * A log file whose writers never wait and never get an error.
 *
 * What cannot be written is dropped and counted, and a line says so when there is room again.
 */
export class RotatingFile {
  readonly #path: string
  readonly #most: number
  readonly #backlog: number
  readonly #lost: (lines: number, why: string) => string
  #waiting: string[] = []
  #waitingBytes = 0
  #dropped = 0
  #why = ''
  #file: FileHandle | undefined
  #size = 0
  #writing: Promise<void> | undefined
  #closed = false

  constructor(path: string, { most = 8 * MIB, backlog = 4 * MIB, lost = lostLine }: RotatingOptions = {}) {
    this.#path = path
    this.#most = most
    this.#backlog = backlog
    this.#lost = lost
  }

  /** Adds lines, each with its end. */
  write(lines: string): void {
    if (this.#closed) return
    const bytes = Buffer.byteLength(lines)
    if (this.#waitingBytes + bytes > this.#backlog)
      return this.#drop(lines, 'they came quicker than the disk takes them')
    this.#waiting.push(lines)
    this.#waitingBytes += bytes
    this.#writing ??= this.#write()
  }

  /** Waits until what was added is written, or dropped. */
  async flush(): Promise<void> {
    while (this.#writing) await this.#writing
  }

  async close(): Promise<void> {
    await this.flush()
    this.#closed = true
    await this.#release()
  }

  async #write(): Promise<void> {
    await Promise.resolve()
    while (this.#waiting.length > 0) {
      const text = this.#waiting.join('')
      this.#waiting = []
      this.#waitingBytes = 0
      const told = this.#dropped
      const notice = told > 0 ? this.#lost(told, this.#why) : ''
      try {
        await this.#append(Buffer.from(notice + text))
        this.#dropped -= told
      } catch (error) {
        this.#drop(text, codeOf(error) ?? String(error))
        await this.#release()
      }
    }
    this.#writing = undefined
  }

  async #append(bytes: Buffer): Promise<void> {
    if (this.#file && this.#size > 0 && this.#size + bytes.length > this.#most) await this.#rotate()
    const file = (this.#file ??= await this.#open())
    const { bytesWritten } = await file.write(bytes)
    if (bytesWritten < bytes.length) {
      // Half of a line would run into the next one.
      await file.truncate(this.#size).catch(() => {})
      throw Object.assign(new Error('the file takes no more bytes'), { code: 'ENOSPC' })
    }
    this.#size += bytes.length
  }

  async #open(): Promise<FileHandle> {
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 })
    const file = await open(this.#path, APPEND, 0o600)
    const found = await file.stat()
    this.#size = found.size
    openNow.add(this.#path)
    return file
  }

  async #rotate(): Promise<void> {
    await this.#release()
    await rm(older(this.#path, KEPT), { force: true })
    for (let age = KEPT; age > 0; age--) {
      await rename(older(this.#path, age - 1), older(this.#path, age)).catch(error => {
        if (codeOf(error) !== 'ENOENT') throw error
      })
    }
  }

  async #release(): Promise<void> {
    openNow.delete(this.#path)
    const file = this.#file
    this.#file = undefined
    await file?.close().catch(() => {})
  }

  #drop(text: string, why: string): void {
    this.#dropped += text.split('\n').length - 1
    this.#why = why
  }
}

/** The name of a log's file that was moved so many times. */
export const older = (path: string, age: number): string => (age === 0 ? path : `${path}.${age}`)

const lostLine = (lines: number, why: string): string =>
  `${JSON.stringify({ level: 'warn', at: Date.now(), message: 'lines of this log were lost', lines, why })}\n`
