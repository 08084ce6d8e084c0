import type { Host } from '../../sdk/index.js'

const MOST = 100_000
const PREFIX = 'ids/'
const IN_FILE = MOST / 2
const DIGITS = 8

type KnownEvent = [reporter: number, event: string, issue: string]

/** The ids of the newest events with their issues: an event that is sent again is not counted again. */
export class KnownEvents {
  readonly #journal: Host['journal']
  readonly #issues = new Map<string, string>()
  #new: KnownEvent[] = []
  #file = 1
  #inFile = 0

  constructor(journal: Host['journal']) {
    this.#journal = journal
  }

  async load(): Promise<void> {
    for (const file of await this.#journal.list(PREFIX)) {
      const found = await this.#journal.read<KnownEvent>(file)
      for (const known of found) this.#remember(...known)
      this.#file = Number(file.slice(PREFIX.length))
      this.#inFile = found.length
    }
  }

  /** The issue of an event of a reporter; each reporter has its own events. */
  issueOf(reporter: number, event: string): string | undefined {
    return this.#issues.get(keyOf(reporter, event))
  }

  add(reporter: number, event: string, issue: string): void {
    this.#remember(reporter, event, issue)
    this.#new.push([reporter, event, issue])
  }

  #remember(reporter: number, event: string, issue: string): void {
    this.#issues.set(keyOf(reporter, event), issue)
    if (this.#issues.size > MOST) this.#issues.delete(this.#issues.keys().next().value!)
  }

  /** Stores what is new; what was added meanwhile waits for the next time. */
  async store(): Promise<void> {
    const added = this.#new
    if (added.length === 0) return
    this.#new = []
    try {
      await this.#journal.append(nameOf(this.#file), added)
    } catch (error) {
      this.#new = [...added, ...this.#new]
      throw error
    }
    this.#inFile += added.length
    if (this.#inFile < IN_FILE) return
    this.#file += 1
    this.#inFile = 0
    for (const file of await this.#journal.list(PREFIX))
      if (Number(file.slice(PREFIX.length)) < this.#file - 2) await this.#journal.remove(file)
  }

  /** Deletes the events of issues that are deleted. */
  forget(issues: ReadonlySet<string>): void {
    for (const [event, issue] of this.#issues) if (issues.has(issue)) this.#issues.delete(event)
  }
}

const nameOf = (file: number): string => PREFIX + String(file).padStart(DIGITS, '0')

/** A reporter, and the id of its event as 16 characters of one byte. */
const keyOf = (reporter: number, event: string): string => reporter + Buffer.from(event, 'hex').toString('latin1')
