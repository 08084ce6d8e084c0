import type { Files } from '../../../sdk/index.js'
import type { CopyRepo } from '../../agent/contract.js'

/** One write of a landing; with `temporary` a new file waits under that name, without it the path goes. */
export interface LandingMove {
  readonly path: string
  readonly stamp: string
  readonly temporary?: string
}

/**
 * A landing in one repository as it is written down before and after each of its steps.
 *
 * `staging`: temporary names may be there, nothing of the person's has been touched. `moving`: every new file waits
 * under its temporary name, and some may have taken their place. `applied`: all have, and the conversation has yet to
 * be updated. `undoing`: a write failed, and some paths may have been put back already.
 */
export interface LandingRecord {
  readonly id: string
  readonly conversation: string
  readonly main: string
  readonly state: 'staging' | 'moving' | 'applied' | 'undoing'
  readonly moves: readonly LandingMove[]
  /** Folders the landing makes, outermost first. */
  readonly made: readonly string[]
  /** Paths that were left alone when the landing was ended after a crash. */
  readonly left?: readonly string[]
  /** What is written into the conversation once all is in place. */
  readonly outcome: CopyRepo
}

/** The landings that are under way, each a file of its own that is written in one step. */
export class LandingRecords {
  readonly #files: Pick<Files, 'read' | 'write' | 'remove' | 'list'>

  constructor(files: Pick<Files, 'read' | 'write' | 'remove' | 'list'>) {
    this.#files = files
  }

  /** Every landing that did not come to its end. */
  async open(): Promise<LandingRecord[]> {
    const names = await this.#files.list('landings/')
    const records = await Promise.all(names.map(name => this.#files.read<LandingRecord>(name)))
    return records.filter(record => record !== undefined)
  }

  write(record: LandingRecord): Promise<void> {
    return this.#files.write(`landings/${record.id}`, record)
  }

  remove(record: LandingRecord): Promise<void> {
    return this.#files.remove(`landings/${record.id}`)
  }
}
