import type { Journals, Log } from '../../sdk/index.js'
import type { LedgerLine } from './line.js'
import type { UsageIndex } from './usage-index.js'

/** What the ledger stands on. */
export interface LedgerDeps {
  readonly journals: Pick<Journals, 'append' | 'read' | 'stat' | 'list'>
  readonly index: UsageIndex
  readonly log: Pick<Log, 'warn' | 'error'>
  /** Called with lines that were just written. */
  readonly added: (lines: readonly LedgerLine[]) => void
  /** Called when the index was brought up to date: it may have lines that `added` was not called with. */
  readonly recounted: () => void
  /** Lines of one journal. */
  readonly most?: number
}

interface Waiting {
  readonly line: LedgerLine
  readonly done: () => void
  readonly fail: (error: unknown) => void
}

const FOLDER = 'ledger/'
const MOST = 50_000
const AT_ONCE = 1_000
const nameOf = (journal: number): string => FOLDER + String(journal).padStart(6, '0')

/** Every settled turn, one line each, in numbered journals that are never rewritten; sums of it are in an index. */
export class Ledger {
  readonly #deps: LedgerDeps
  readonly #most: number
  #waiting: Waiting[] = []
  #working: Promise<void> | undefined
  /** The index does not know all lines. Only a write that failed says so, and the next one waits for `current`. */
  #behind = true
  #opening: Promise<void> | undefined

  constructor(deps: LedgerDeps) {
    this.#deps = deps
    this.#most = deps.most ?? MOST
  }

  /** Resolves when the index knows every line; makes it anew where it does not fit the journals or cannot be read. */
  async current(): Promise<void> {
    if (!this.#behind) return
    this.#opening ??= this.#open().finally(() => (this.#opening = undefined))
    await this.#opening
  }

  /** Writes a line, unless there is one of its run and part; it would survive a power cut when this returns. */
  record(line: LedgerLine): Promise<void> {
    return new Promise((done, fail) => {
      this.#waiting.push({ line, done, fail })
      this.#working ??= this.#work()
    })
  }

  /** Resolves when nothing is being written. */
  async idle(): Promise<void> {
    await this.#working
  }

  async #work(): Promise<void> {
    // Those that ask at the same time are written together.
    await Promise.resolve()
    while (this.#waiting.length > 0) {
      const some = this.#waiting.splice(0, AT_ONCE)
      try {
        await this.#write(some.map(({ line }) => line))
        for (const { done } of some) done()
      } catch (error) {
        this.#behind = true
        for (const { fail } of some) fail(error)
      }
    }
    this.#working = undefined
  }

  async #write(lines: readonly LedgerLine[]): Promise<void> {
    const { added, index, journals, log } = this.#deps
    await this.current()
    const fresh = this.#fresh(lines)
    if (fresh.length === 0) return
    const { journal, lines: before } = index.mark
    const at = journal === 0 || before >= this.#most ? journal + 1 : journal
    const position = await journals.append(nameOf(at), fresh, { flush: true })
    try {
      index.add(fresh, { journal: at, lines: position })
    } catch (error) {
      // They are in the ledger: the next write brings the sums up to date.
      this.#behind = true
      log.error('the sums of the ledger could not be written', { error: String(error) })
    }
    added(fresh)
  }

  /** Those whose run and part have no line. */
  #fresh(lines: readonly LedgerLine[]): LedgerLine[] {
    const { index } = this.#deps
    const here = new Set<string>()
    return lines.filter(({ run, part = 1 }) => {
      if (run === undefined) return true
      const name = `${run} ${part}`
      if (here.has(name) || index.has(run, part)) return false
      here.add(name)
      return true
    })
  }

  async #open(): Promise<void> {
    const { index, log, recounted } = this.#deps
    try {
      await this.#catchUp()
    } catch (error) {
      log.warn('the sums of the ledger are made anew', { error: String(error) })
      index.reset()
      await this.#catchUp()
    }
    this.#behind = false
    recounted()
  }

  async #catchUp(): Promise<void> {
    const { index, journals, log } = this.#deps
    const numbers = (await journals.list(FOLDER)).map(name => Number(name.slice(FOLDER.length))).sort((a, b) => a - b)
    const known = index.mark
    const reached = known.journal === 0 || ((await journals.stat(nameOf(known.journal)))?.entries ?? 0) >= known.lines
    if (!reached) {
      log.warn('the sums of the ledger do not fit it and are made anew', { ...known })
      index.reset()
    }
    const { journal, lines } = reached ? known : { journal: 0, lines: 0 }
    for (const number of numbers.filter(each => each >= journal)) {
      const after = number === journal ? lines : 0
      const more = await journals.read<LedgerLine>(nameOf(number), after)
      if (more.length > 0) index.add(more, { journal: number, lines: after + more.length }, numbers.at(-1))
    }
  }
}
