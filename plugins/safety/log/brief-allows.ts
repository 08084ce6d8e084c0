import type { Journals } from '../../../sdk/index.js'
import type { CommandClass } from '../../settings/contract.js'
import type { SafetySubject } from '../contract.js'
import { ignored } from '../../../sdk/index.js'

/** A plain allow, kept for the replay alone. */
export interface BriefAllow {
  readonly at: number
  readonly subject: SafetySubject
  readonly classes: readonly CommandClass[]
  readonly conversationId?: string
  readonly persona?: string
  readonly unattended: boolean
  readonly outside?: string
}

const FOLDER = 'safety-allows/'
const EACH = 5_000
const MOST = 20_000
const APART_MS = 200
const nameOf = (part: number): string => FOLDER + String(part).padStart(8, '0')

/** The last plain allows, in journals of which whole ones are removed; nothing is rewritten. */
export class BriefAllows {
  readonly #journal: Pick<Journals, 'append' | 'read' | 'stat' | 'list' | 'remove'>
  readonly #failed: (error: unknown) => void
  #parts: number[] = []
  #inLast = 0
  #waiting: BriefAllow[] = []
  #timer: NodeJS.Timeout | undefined
  #work: Promise<void> | undefined

  constructor(
    journal: Pick<Journals, 'append' | 'read' | 'stat' | 'list' | 'remove'>,
    failed: (error: unknown) => void,
  ) {
    this.#journal = journal
    this.#failed = failed
  }

  async load(): Promise<void> {
    const names = await this.#journal.list(FOLDER)
    this.#parts = names.map(name => Number(name.slice(FOLDER.length))).sort((a, b) => a - b)
    const last = this.#parts.at(-1)
    this.#inLast = last === undefined ? 0 : ((await this.#journal.stat(nameOf(last)))?.entries ?? 0)
  }

  /** Adds one; those of one moment are written together. */
  add(allow: BriefAllow): void {
    this.#waiting.push(allow)
    this.#timer ??= setTimeout(() => void this.flush().catch(this.#failed), APART_MS).unref()
  }

  /** Resolves when all are written. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#work = (this.#work ?? Promise.resolve())
      .catch(ignored('the step before told its own caller'))
      .then(() => this.#write())
    await this.#work
  }

  /** The last ones, oldest first. */
  async all(): Promise<BriefAllow[]> {
    await this.flush()
    const found: BriefAllow[] = []
    for (const part of this.#parts)
      found.push(
        ...(await this.#journal.read<BriefAllow>(nameOf(part), 0, { damaged: {} })).filter(({ subject }) => subject),
      )
    return found.slice(-MOST)
  }

  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      let part = this.#parts.at(-1)
      if (part === undefined || this.#inLast >= EACH) {
        part = (part ?? 0) + 1
        this.#parts.push(part)
        this.#inLast = 0
      }
      const some = this.#waiting.splice(0, EACH - this.#inLast)
      this.#inLast = await this.#journal.append(nameOf(part), some)
      // The last ones are whole without the first part.
      while ((this.#parts.length - 2) * EACH + this.#inLast >= MOST)
        await this.#journal.remove(nameOf(this.#parts.shift()!))
    }
  }
}
