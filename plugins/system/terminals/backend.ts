import type { ReachFolder } from '../../../sdk/index.js'
import type { Env } from '../../../sdk/node/programs/run.js'

/** One session. */
export interface Session {
  readonly name: string
  readonly label?: string
  /** The folder it was opened in, as a workspace path; absent: the root. */
  readonly opened?: string
  /** What the group that started it runs in it; absent: a person's shell. */
  readonly work?: TerminalWork
  /** Its first process, while it runs. */
  readonly pid?: number
  readonly running: boolean
  readonly activityAt: number
  readonly exitCode?: number
  /** When its program ended. */
  readonly endedAt?: number
  readonly command?: string
  /** The real path of the folder of the foreground program. */
  readonly folder?: string
  readonly cols: number
  readonly rows: number
}

/** The size of a window. */
export interface TerminalSize {
  readonly cols: number
  readonly rows: number
}

/** What a group runs in a session. */
export interface TerminalWork {
  readonly purpose: string
  /** The port that its program was asked to listen on. */
  readonly port?: number
}

/** The programs that a group runs in a session, in place of a person's shell. */
export interface TerminalProgram {
  /** A script for `sh`. */
  readonly script: string
  readonly env: Env
  /** All that it sees of the workspace; absent: the whole. */
  readonly only?: readonly ReachFolder[]
}

/** The options of a new session. */
export interface Opening extends TerminalSize {
  readonly name: string
  readonly label?: string
  readonly opened?: string
  /** Text that is typed into it when it opens. */
  readonly typed?: string
  readonly work?: TerminalWork
  /** Absent: a person's shell. */
  readonly program?: TerminalProgram
  /** A command that is behind the wall already, in place of a program. */
  readonly command?: ShellCommand
  /** The real path of the folder to begin in. */
  readonly folder: string
}

/** The command that starts the shell of a terminal. */
export interface ShellCommand {
  readonly program: string
  readonly args: readonly string[]
  readonly env: Env
}

/** Receives the output of a session. */
export interface TerminalListener {
  /** A piece of what the program wrote, in order. */
  data(text: string): void
  /** The program has ended; nothing follows. */
  exit(code: number): void
  /** Output since the last piece may be missing: draw the screen again. */
  lost(): void
}

/** An attached session. */
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

/** Runs the terminals of this machine. */
export interface Backend {
  list(): Promise<Session[]>
  open(opening: Opening): Promise<void>
  follow(name: string, listener: TerminalListener): Promise<Feed | undefined>
  /** Ends a session with SIGHUP, or SIGTERM, and SIGKILL after 5 s; resolves when all its processes are gone. */
  kill(name: string, signal?: 'SIGHUP' | 'SIGTERM'): Promise<void>
  /** Its last lines; undefined when there is no such session. */
  history(name: string, lines: number): Promise<History | undefined>
  /** Resumes the logs of sessions that are older than this daemon. */
  resume(): Promise<void>
  /** Disconnects from the sessions once their output is in the logs. */
  close(): Promise<void>
}

/** The most text of a history. */
export const MOST_TEXT = 8 << 20
