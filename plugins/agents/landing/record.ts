import type { Files } from '../../../sdk/index.js'
import type { CopyRepo } from '../../agent/contract.js'
import type { GitSteps } from './git-steps.js'

/** One write of a landing: with `temporary` a new file staged under that name, without it a deletion. */
export interface LandingMove {
  readonly path: string
  readonly stamp: string
  readonly temporary?: string
}

/**
 * The stored state of a landing in one repository, written before and after each of its steps.
 *
 * `staging`: temporary files may exist, none of the person's files changed. `moving`: all new files are staged, and
 * some may have been moved to their paths. `applied`: all were moved, and the conversation is not yet updated.
 * `undoing`: a write failed, and some paths may already be restored.
 */
export interface LandingRecord {
  readonly id: string
  readonly conversation: string
  readonly main: string
  readonly state: 'staging' | 'moving' | 'applied' | 'undoing'
  readonly moves: readonly LandingMove[]
  /** Folders that the landing creates, outermost first. */
  readonly made: readonly string[]
  /** What changes in the git dir once all files are in place. */
  readonly git?: GitSteps
  /** Paths that were skipped when the landing was recovered after a crash. */
  readonly left?: readonly string[]
  /** The outcome to record in the conversation once all files are in place. */
  readonly outcome: CopyRepo
}

/** The landings in progress, one atomically written file each. */
export class LandingRecords {
  readonly #files: Pick<Files, 'read' | 'write' | 'remove' | 'list'>

  constructor(files: Pick<Files, 'read' | 'write' | 'remove' | 'list'>) {
    this.#files = files
  }

  /** All landings that were interrupted. */
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
