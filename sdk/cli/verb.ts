import type { StillWorking } from './still-working.js'

/** What a verb's end means to a script. */
export const EXIT = { ok: 0, failed: 1, usage: 2, noDaemon: 3, turn: 4, interrupted: 130 } as const

/** A failure with the sentence to print and the code to leave with. */
export class CommandFailure extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.name = 'Failure'
    this.code = code
  }
}

/** Ends the program for words on the command line that make no sense. */
export const misused = (message: string): never => {
  throw new CommandFailure(EXIT.usage, message)
}

/** Where the program runs: its streams, its surroundings, and who looks on. */
export interface Terminal {
  readonly in: NodeJS.ReadStream
  readonly out: NodeJS.WritableStream
  readonly err: NodeJS.WritableStream
  readonly env: { readonly [name: string]: string | undefined }
  readonly cwd: string
  /** The program's own root: the folder that holds `kernel/` and `sdk/`. */
  readonly root: string
  readonly version: string
  readonly colour: boolean
  /** The width of the terminal the output goes to; absent for a pipe or a file. */
  readonly columns?: number
  /**
   * The width that tables and help are made for: of the terminal, or what COLUMNS says; absent: lines of any length.
   */
  readonly width?: number
  /** Tells a person that a silent program is at work; absent where nobody looks on. */
  readonly sign?: StillWorking
  /** A person reads the output and can type. */
  readonly interactive: boolean
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal
}

/** One option of a verb. */
export interface Flag {
  /** The placeholder of its value; absent for a switch. */
  readonly value?: string
  readonly multiple?: true
  /** One letter that says the same. */
  readonly short?: string
  /** The values it takes, where they are few. */
  readonly choices?: readonly string[]
  readonly help: string
}

/** What was given on the command line. */
export interface GivenArguments {
  readonly args: readonly string[]
  on(flag: string): boolean
  text(flag: string): string | undefined
  all(flag: string): readonly string[]
}

/** One thing the program can do. */
export interface Verb {
  readonly name: string
  /** Another word for it that people try. */
  readonly also?: string
  /**
   * The name is a group of the document too: `sandbox NAME CALL` makes a call of it, where that is no word of this
   * verb.
   */
  readonly group?: true
  /** What follows the name, as help shows it. */
  readonly usage: string
  readonly summary: string
  /** Commands to copy, without the program's name. */
  readonly examples: readonly [string, ...string[]]
  readonly notes?: readonly string[]
  /** The calls of a group, each with its first sentence. */
  readonly calls?: readonly (readonly [name: string, summary: string])[]
  readonly flags: { readonly [name: string]: Flag }
  readonly least?: number
  readonly most?: number
  run(terminal: Terminal, given: GivenArguments): Promise<number>
}

/** The options of every verb that talks to a daemon. */
export const CONNECTION: { readonly [name: string]: Flag } = {
  url: { value: 'URL', help: 'the daemon to talk to (SANDBOX_URL)' },
  data: { value: 'DIR', help: 'the data folder of the daemon to talk to (SANDBOX_DATA)' },
  'token-file': {
    value: 'FILE',
    help: 'a file with a control token, - for standard input (SANDBOX_TOKEN holds one itself)',
  },
  json: { help: 'print JSON, one value a line' },
}
