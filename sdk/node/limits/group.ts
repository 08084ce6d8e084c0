import { refuse } from '../../refusal.js'
import { bytesWords } from '../../sizes.js'
import { killWalled } from '../programs/run-here.js'
import { limitedArgs } from './prefix.js'
import type { WallLimits } from './settings.js'

/** The exit code of a program that SIGXFSZ ended. */
const FILE_TOO_LARGE = 153
/** What a shell says of a command that SIGXFSZ ended, whatever it does next. */
const SHELL_SAYS = /^(.*: line \d+: +\d+ +)?File size limit exceeded/m
/** What programs that ignore the signal end with: Node, Python and Rust. */
const PROGRAM_SAYS = /EFBIG|\[Errno 27\]|\(os error 27\)/
const LAST_WORDS = 4000

const count = (value: number): string => value.toLocaleString('en')

const WORDS: {
  readonly [limit in keyof WallLimits]: { readonly of: string; readonly value: (value: number) => string }
} = {
  memory: { of: 'of memory in a turn', value: bytesWords },
  processes: { of: 'processes and threads in a turn', value: count },
  openFiles: { of: 'open files in a turn', value: count },
  fileSize: { of: 'in one file', value: bytesWords },
  pseudoTerminals: { of: 'pseudo-terminals in a turn', value: count },
}

/** The sentence of a turn that went over a limit. */
const sentenceOf = (limit: keyof WallLimits, most: number, found: number | undefined): string => {
  const { of, value } = WORDS[limit]
  return (
    `expected at most ${value(most)} ${of}, found ${found === undefined ? 'more' : value(found)}: the programs of `
    + 'the turn were ended; '
    + `wall.limits.${limit} in the file of --config changes the limit`
  )
}

/** What a program left behind when it ended. */
export interface ProgramEnd {
  readonly code: number
  readonly output: string
}

/** What is told of the programs that a group counts. */
export interface ProgramLimits {
  /** A program began: `over` is settled when it has ended. */
  begun(pid: number, over: Promise<unknown>): void
  ended(end: ProgramEnd): void
  /** The sentence of the limit that its group went over, where this is known. */
  readonly over?: string | undefined
}

/** What a control group needs from its owner. */
export interface GroupKeeper {
  readonly limits: WallLimits
  /** The `cgroup.procs` of the group's control group, where there is one. */
  readonly procs: () => string | undefined
  /** The limit that the system itself kept meanwhile. */
  readonly exceeded: () => keyof WallLimits | undefined
  /** Called when the group gets a program, and when nothing is in it any more. */
  readonly busy: (busy: boolean) => void
}

/**
 * All programs that run behind walls for one conversation, or one process that serves several: together they keep
 * within the limits, or end together.
 */
export class ProgramGroup implements ProgramLimits {
  readonly #keeper: GroupKeeper
  readonly #pids = new Set<number>()
  readonly #listeners = new Set<(sentence: string) => void>()
  #over: string | undefined

  constructor(keeper: GroupKeeper) {
    this.#keeper = keeper
  }

  get limits(): WallLimits {
    return this.#keeper.limits
  }

  /** The first process of each wall, outside of it. */
  get pids(): readonly number[] {
    return [...this.#pids]
  }

  /** The sentence of the limit it went over; what still starts is ended at once. */
  get over(): string | undefined {
    return this.#over
  }

  /** Whether nothing runs in it and nobody waits for it. */
  get idle(): boolean {
    return this.#pids.size === 0 && this.#listeners.size === 0
  }

  /** The arguments of `sh` that start a command within the limits that hold for each program. */
  args(command: readonly string[]): string[] {
    return limitedArgs(this.limits, this.#keeper.procs(), command)
  }

  /** Counts a program until it is over. */
  begun(pid: number, over: Promise<unknown>): void {
    // Without a turn a program has nothing to do with those before it.
    if (this.idle) this.#over = undefined
    this.#pids.add(pid)
    this.#keeper.busy(true)
    const gone = () => {
      this.#pids.delete(pid)
      this.#rest()
    }
    over.then(gone, gone)
    if (this.#over !== undefined) killWalled(pid)
  }

  /** A turn begins: called with the sentence when it goes over a limit, until the answered function is called. */
  listen(listener: (sentence: string) => void): () => void {
    if (this.#listeners.size === 0) this.#over = undefined
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
      this.#rest()
    }
  }

  /** Ends every program of the group. */
  exceed(limit: keyof WallLimits, found?: number): void {
    const first = this.#over === undefined
    this.#over ??= sentenceOf(limit, this.limits[limit], found)
    for (const pid of this.#pids) killWalled(pid)
    if (first) for (const listener of this.#listeners) listener(this.#over)
  }

  /** Takes note of how a program ended: of the size of files the system tells the program alone. */
  ended({ code, output }: ProgramEnd): void {
    const kept = this.#keeper.exceeded()
    if (kept) return this.exceed(kept)
    const words = output.slice(-LAST_WORDS)
    if (code === FILE_TOO_LARGE || SHELL_SAYS.test(words) || (code !== 0 && PROGRAM_SAYS.test(words)))
      this.exceed('fileSize')
  }

  /** Refuses when the group went over a limit. */
  check(): void {
    if (this.#over !== undefined) refuse('too-large', this.#over)
  }

  #rest(): void {
    if (!this.#pids.size) this.#keeper.busy(false)
  }
}
