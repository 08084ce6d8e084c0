import type { StillWorking } from './terminal/still-working.js'

/** The exit codes of verbs, for scripts: each means one thing everywhere (`EXIT_CODES` says what). */
export const EXIT = { ok: 0, failed: 1, usage: 2, noDaemon: 3, waits: 4, refused: 5, interrupted: 130 } as const

/** A failure with the message to print and the exit code. */
export class CommandFailure extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.name = 'Failure'
    this.code = code
  }
}

/** Ends the program because of wrong arguments. */
export const misused = (message: string): never => {
  throw new CommandFailure(EXIT.usage, message)
}

/** The program's environment: its streams, variables and terminal. */
export interface Terminal {
  readonly in: NodeJS.ReadStream
  readonly out: NodeJS.WritableStream
  readonly err: NodeJS.WritableStream
  readonly env: { readonly [name: string]: string | undefined }
  readonly cwd: string
  /** The program's folder, which contains `kernel/` and `sdk/`. */
  readonly root: string
  readonly version: string
  readonly colour: boolean
  /** The width of the terminal that the output goes to; absent for a pipe or a file. */
  readonly columns?: number
  /** The width of tables and help: that of the terminal, or COLUMNS; absent: unlimited. */
  readonly width?: number
  /** The progress sign of a silent program; absent without a terminal. */
  readonly sign?: StillWorking
  /** Whether a person reads the output and can type. */
  readonly interactive: boolean
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal
}

/** One option of a verb. */
export interface Flag {
  /** The placeholder of its value; absent for a switch. */
  readonly value?: string
  readonly multiple?: true
  /** Its one-letter form. */
  readonly short?: string
  /** The values that it accepts, if they are fixed. */
  readonly choices?: readonly string[]
  readonly help: string
  /** Accepted, but neither in help nor completed. */
  readonly hidden?: true
}

/** The parsed command line. */
export interface GivenArguments {
  readonly args: readonly string[]
  on(flag: string): boolean
  text(flag: string): string | undefined
  all(flag: string): readonly string[]
}

/** One command of the program. */
export interface Verb {
  readonly name: string
  /** Another accepted name. */
  readonly also?: string
  /** A group of the document: `sandbox NAME CALL` makes a call of it, unless CALL is a word of this verb. */
  readonly group?: string
  /** The usage after the name, as help shows it. */
  readonly usage: string
  readonly summary: string
  /** Example commands, without the program's name. */
  readonly examples: readonly [string, ...string[]]
  readonly notes?: readonly string[]
  /** The calls of a group, each with its first sentence. */
  readonly calls?: readonly (readonly [name: string, summary: string])[]
  readonly flags: { readonly [name: string]: Flag }
  /** Where the values of a placeholder of the usage or of a flag come from, for completion: a verb of a group. */
  readonly ids?: { readonly [placeholder: string]: readonly [group: string, verb: string] }
  readonly least?: number
  readonly most?: number
  /** Left out of help and completion. */
  readonly hidden?: true
  run(terminal: Terminal, given: GivenArguments): Promise<number>
}

/** Verbs that take a conversation complete it from the board. */
export const CONVERSATIONS = { CONVERSATION: ['agents', 'list'], 'CONVERSATION…': ['agents', 'list'] } as const

/** The options of every verb that talks to a daemon. */
export const CONNECTION: { readonly [name: string]: Flag } = {
  url: { value: 'URL', help: 'the daemon to use (SANDBOX_URL)' },
  data: { value: 'DIR', help: 'the data folder of the daemon to use (SANDBOX_DATA)' },
  'token-file': {
    value: 'FILE',
    help: 'a file with a control token, - for standard input (SANDBOX_TOKEN holds one itself)',
  },
  json: { help: 'print JSON, one value a line' },
}
