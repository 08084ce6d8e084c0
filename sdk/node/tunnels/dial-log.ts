import { mkdir, readFile, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { writeAtomic } from '../files/files.js'
import { redacted } from '../access/redact.js'

const MOST_LINES = 200
const MOST_LENGTH = 500
const SHORTEST = 4
/** How long lines are gathered before they are written. */
const GATHER_MS = 500

/** A text without secrets: each stored value, and what looks like a credential, is replaced by `***`. */
export const hideSecrets = (text: string, secrets: readonly string[]): string =>
  redacted(
    secrets
      .filter(secret => secret.length >= SHORTEST)
      .toSorted((one, other) => other.length - one.length)
      .reduce((left, secret) => left.replaceAll(secret, '***'), text.toWellFormed()),
  )

/** The log of one dial: its last lines are kept in a file. */
export class DialLog {
  readonly #file: string
  readonly #secrets: readonly string[]
  #lines: string[] = []
  #timer: NodeJS.Timeout | undefined
  #writing = Promise.resolve()

  constructor(file: string, secrets: readonly string[]) {
    this.#file = file
    this.#secrets = secrets
  }

  /** Keeps a line, and answers it as it may be shown. */
  add(line: string): string {
    const shown = hideSecrets(line, this.#secrets).slice(0, MOST_LENGTH)
    this.#lines.push(shown)
    if (this.#lines.length > MOST_LINES) this.#lines = this.#lines.slice(-MOST_LINES)
    this.#timer ??= setTimeout(() => void this.write().catch(() => undefined), GATHER_MS)
    return shown
  }

  /** Writes what is not written yet. */
  write(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const text = this.#lines.join('\n')
    this.#writing = this.#writing
      .catch(() => undefined)
      .then(async () => {
        await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 })
        await writeAtomic(this.#file, JSON.stringify({ at: this.#began, text }))
      })
    return this.#writing
  }

  readonly #began = Date.now()
}

/** The log of the last dial as it was kept; `at` is when the dial began. */
export const dialLogIn = async (file: string): Promise<{ at: number; text: string } | undefined> => {
  const found = await stat(file).catch(() => undefined)
  if (!found) return undefined
  return JSON.parse(await readFile(file, 'utf8')) as { at: number; text: string }
}
