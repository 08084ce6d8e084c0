import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests, Stream } from '../../sdk/contract.js'
import type { ContentDigest, Count, Millis, Ok } from '../../sdk/types.js'

/**
 * One line of the program: `start`, `log`, `node`, `result`, `error` and `exit` are its own; the daemon adds `text` for
 * a line of another form, `terminal` with the terminal that shows the run, and `heartbeat` after 15 s without a line.
 */
export interface CliLine {
  kind: string
  [field: string]: unknown
}
/** A flag of a command. */
export interface CliCommandFlag {
  name: string
  /** The placeholder of its value; left out for a switch. */
  value?: string
  summary: string
}
/** A command of the program. */
export interface CliCommand {
  /** Its words, such as `deploy` and `plan`. */
  args: string[]
  summary: string
  flags: CliCommandFlag[]
  /** `apply`: only POST /cli/apply runs it. */
  run: 'stream' | 'apply'
  /** It may change something outside of the sandbox. */
  changes: boolean
}
/** How an apply stands. */
export interface ApplyRun {
  state: 'idle' | 'running' | 'succeeded' | 'failed' | 'interrupted'
  startedAt?: Millis
  endedAt?: Millis
  /** Who started it. */
  by?: string
  /** The terminal that shows it. */
  session?: string
  /** Where it is, or where it ended. */
  command?: 'resolve' | 'apply' | 'adopt'
  /** How the command ended. */
  code?: number & tags.Type<'int32'>
}
/** What the program can do, and what it does. */
export interface CliDescription {
  program: 'sandbox'
  version: string
  commands: CliCommand[]
  /** How many runs are going on. */
  running: Count
  apply: ApplyRun
}
type Argument = string & tags.MaxLength<4096>

/** The program `sandbox`, run inside of the sandbox. */
export interface CliCalls extends CliServices {
  /**
   * Describe what the command-line program can do, and how the current or last apply stands.
   *
   * - 501: the program is missing
   */
  'GET /cli'(): CliDescription

  /**
   * Run a command of the program and stream what it prints, line by line.
   *
   * It acts with your role, as long as it runs, and reaches no call that control tokens cannot make. It ends when you
   * close the stream, or after 10 minutes: SIGTERM, and SIGKILL 5 s later. A command that fails ends the stream with an
   * `error` that has its exit code and the last lines of its standard error. `deploy resolve` and `deploy plan` are
   * shown in a terminal too.
   *
   * - 400: no arguments, more than 64, or one with a NUL byte
   * - 409: `deploy resolve` or `deploy adopt` while an apply runs; secrets that the command needs are not stored
   * - 422: a command that is not listed, one of kind `apply`, a flag that leads the program elsewhere, or a file as a
   *   value
   * - 424: the command failed; `code` or `signal` says how
   * - 429: four runs are going on
   * - 501: the program is missing
   * - 503: secrets are locked
   */
  'POST /cli'(input: { args: Argument[] & tags.MinItems<1> & tags.MaxItems<64> }): Stream<CliLine, { code: 0 }>

  /**
   * Bring what should run onto the machines: resolve, apply, adopt, as one job in a terminal.
   *
   * It answers at once, and starts nothing while one runs. Ending its terminal ends it. It outlives the daemon. With
   * `expect`, the digest that a plan answered, it fails when anything else should run by now.
   *
   * - 409: there is no deployment configuration, or secrets that it needs are not stored; both are named
   * - 422: the configuration cannot be read
   * - 429: too many terminals run
   * - 501: the program, `ssh`, `git` or a program for terminals is missing
   * - 503: secrets are locked, or terminals are not served
   */
  'POST /cli/apply'(input: { expect?: ContentDigest }): Ok

  /**
   * Play what the current or last apply printed, from its first line, and follow it until it ends.
   *
   * The id of an event is the number of its line. Values of secrets are `***`. When a new apply begins, the stream of
   * the one before ends.
   */
  'GET /cli/apply/events'(): Stream<CliLine, { apply: ApplyRun }>
}

/** What other groups ask of this one. */
export interface CliServices {
  /** Starts an apply as the caller, as POST /cli/apply does. */
  'cli.apply'(): Ok
  /** The lines of the current or last apply, until it ends; the last one is `{ kind: "apply", apply }`. */
  'cli.follow'(): Stream<CliLine>
}

export const cliContract: Contract<CliCalls> = {
  schema: () => typia.json.application<CliCalls>(),
  request: typia.misc.createValidatePrune<Requests<CliCalls>>(),
  reply: () => typia.createValidate<Replies<CliCalls>>(),
}
