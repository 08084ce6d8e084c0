import type { Env } from '../../../sdk/node/programs/run.js'

/** One session as the machine has it. */
export interface Session {
  readonly name: string
  readonly label?: string
  /** The folder it was opened in, as a workspace path; absent: the root. */
  readonly opened?: string
  readonly running: boolean
  readonly activityAt: number
  readonly exitCode?: number
  /** When its program ended. */
  readonly endedAt?: number
  readonly command?: string
  /** The real path of the folder the program in front is in. */
  readonly folder?: string
  readonly cols: number
  readonly rows: number
}

/** How large a window is. */
export interface TerminalSize {
  readonly cols: number
  readonly rows: number
}

/** A session that is to be opened. */
export interface Opening extends TerminalSize {
  readonly name: string
  readonly label?: string
  readonly opened?: string
  /** What is typed into it at once. */
  readonly typed?: string
  /** The real path of the folder to begin in. */
  readonly folder: string
}

/** What a terminal's shell is started as. */
export interface ShellCommand {
  readonly program: string
  readonly args: readonly string[]
  readonly env: Env
}

/** Who hears what a session says. */
export interface TerminalListener {
  /** A piece of what the program wrote, in order. */
  data(text: string): void
  /** The program has ended; nothing follows. */
  exit(code: number): void
  /** What was said since the last piece may have been missed: a picture of the screen is to be asked for. */
  lost(): void
}

/** One session as it is followed. */
export interface Feed {
  /**
   * Draws what the session shows, with its history.
   *
   * `drawn` is called between two pieces of data: the text holds all of those before, and none of those after.
   */
  draw(drawn: (text: string) => void): void
  write(text: string): void
  resize(size: TerminalSize): void
  pause(): void
  resume(): void
  close(): void
}

/** Text of a session's history. */
export interface History {
  readonly lines: readonly string[]
  /** There are, or were, older lines. */
  readonly more: boolean
}

/** What keeps terminals on this machine. */
export interface Backend {
  list(): Promise<Session[]>
  open(opening: Opening): Promise<void>
  follow(name: string, listener: TerminalListener): Promise<Feed | undefined>
  /** Ends a session, and answers when nothing of it is left. */
  kill(name: string): Promise<void>
  /** Its last lines; undefined when there is no such session. */
  history(name: string, lines: number): Promise<History | undefined>
  /** Goes on with the logs of what has run since before this daemon. */
  resume(): Promise<void>
  /** Leaves everything as it is, once what was said is in the logs. */
  close(): Promise<void>
}

/** The most text of a history. */
export const MOST_TEXT = 8 << 20
