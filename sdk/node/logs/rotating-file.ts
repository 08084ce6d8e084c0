import { constants } from 'node:fs'
import { mkdir, open, rename, rm, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { logLine } from '../../log-line.js'
import { codeOf } from '../files/paths.js'
import { ignored } from '../../ignored.js'

const MIB = 1024 * 1024
/** O_NOFOLLOW and O_NONBLOCK: never writes through a link or blocks on a pipe. */
const APPEND = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** When a log rotates, and how it reports lost lines. */
export interface RotatingOptions {
  /** Bytes after which the file is moved to `.1`. */
  readonly most?: number
  /** Bytes of lines that may be buffered; further lines are dropped. */
  readonly backlog?: number
  /** Formats the line that reports dropped lines. */
  readonly lost?: (lines: number, why: string) => string
}

/** The number of rotated files kept; `.1` is the newest. */
export const KEPT = 2

const openNow = new Set<string>()

/** Whether this process has a log open. */
export const isLive = (path: string): boolean => openNow.has(path)

/**
 * A log file whose writers never wait and never receive an error.
 *
 * Lines that cannot be written are dropped and counted; the count is logged when writing works again.
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
      return this.#drop(lines, 'they arrived faster than the disk can write')
    this.#waiting.push(lines)
    this.#waitingBytes += bytes
    this.#writing ??= this.#write()
  }

  /** Waits until buffered lines are written or dropped. */
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
      // A partial line would merge with the next one.
      await file.truncate(this.#size).catch(ignored('the write before it is reported'))
      throw Object.assign(new Error('the file system accepts no more bytes'), { code: 'ENOSPC' })
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
    await file?.close().catch(ignored('a log that is closed has nothing left to write'))
  }

  #drop(text: string, why: string): void {
    this.#dropped += text.split('\n').length - 1
    this.#why = why
  }
}

/** The path of a log after `age` rotations. */
export const older = (path: string, age: number): string => (age === 0 ? path : `${path}.${age}`)

const lostLine = (lines: number, why: string): string =>
  logLine({ level: 'warn', at: Date.now(), message: 'lines of this log were lost', lines, why })
