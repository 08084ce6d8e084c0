import type { tags } from 'typia'
import type { Socket } from '../../../sdk/contract.js'
import type { Count, Millis, Ok } from '../../../sdk/types.js'

/** The name of a terminal session; the part before the first dash is its kind. */
export type TerminalName = string & tags.Pattern<'^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$'>
/** The width of a terminal, in characters. */
export type Columns = number & tags.Type<'uint32'> & tags.Minimum<20> & tags.Maximum<500>
/** The height of a terminal, in rows. */
export type Rows = number & tags.Type<'uint32'> & tags.Minimum<5> & tags.Maximum<200>

/** A terminal, and what runs in it. */
export interface TerminalSession {
  name: string
  label?: string
  kind: 'shell' | 'panel' | 'agent' | 'job' | 'process'
  running: boolean
  /** 0: unknown. */
  activityAt: Millis
  /** The exit code of its program once it ended; 128 plus the signal's number if a signal ended it. */
  exitCode?: number
  /** The foreground program; absent at a prompt. */
  command?: string
  /** The folder that program is in, as a workspace path; absent in the root and outside. */
  cwd?: string
  cols: number
  rows: number
  /** Sockets that are open on it. */
  attached: Count
}

/** Typed input. */
export interface TerminalInput {
  type: 'input'
  data: string
}
/** The size of the window the terminal is shown in. */
export interface TerminalResize {
  type: 'resize'
  cols: Columns
  rows: Rows
}
/** Send one every 30 s. */
export interface SocketPing {
  type: 'ping'
}
/** What a client of a terminal sends. */
export type TerminalClientFrame = TerminalInput | TerminalResize | SocketPing

/** Output: first what the terminal showed before, then everything new. */
export interface TerminalData {
  type: 'data'
  data: string
}
/** Its program has ended. */
export interface TerminalExit {
  type: 'exit'
  code: number
}
/** The reply to `ping`. */
export interface SocketPong {
  type: 'pong'
}
/** What a terminal sends. */
export type TerminalServerFrame = TerminalData | TerminalExit | SocketPong

/** Shells in the workspace that outlive their windows, and the daemon. */
export interface TerminalCalls {
  /**
   * List every terminal session.
   *
   * One whose program ended stays for 24 h with its exit code. The list is empty while no terminal was ever opened.
   */
  'GET /system/terminals'(): { sessions: TerminalSession[] }

  /**
   * Open a shell in a new terminal session, or answer the one of that name unchanged.
   *
   * It runs behind the wall, with the workspace writable and the daemon's own files, sockets and processes hidden.
   * `cwd` is a workspace path; `command` is typed into the shell. At most 32 shells run.
   *
   * - 404: `cwd` is not a folder of the workspace
   * - 429: 32 shells are open
   */
  'POST /system/terminals'(input: {
    name?: string & tags.Pattern<'^web-[A-Za-z0-9_-]{1,40}$'>
    label?: string & tags.MinLength<1> & tags.MaxLength<80>
    cwd?: string & tags.MaxLength<400>
    command?: string & tags.MinLength<1> & tags.MaxLength<4000>
    cols?: Columns
    rows?: Rows
  }): TerminalSession

  /**
   * End a terminal session and everything in it.
   *
   * Its processes get SIGHUP and, after 5 s, SIGKILL. Ending a session that does not exist succeeds.
   */
  'DELETE /system/terminals/{name}'(input: { name: TerminalName }): Ok

  /**
   * Give what a terminal showed as plain text, oldest first.
   *
   * Wrapped lines are joined and control sequences removed. A longer history is cut to its last 8 MiB, with
   * `truncated`.
   *
   * - 403: this kind of terminal needs a higher role
   * - 404: no such terminal
   */
  'GET /system/terminals/{name}/scrollback'(input: {
    name: TerminalName
    lines?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<100000>
  }): { name: string; text: string; lines: Count; truncated: boolean }

  /**
   * Attach to a terminal session over a WebSocket.
   *
   * `ticket` is one of POST /system/ws-ticket. A session named `web-…` that does not exist is opened, any other is 404.
   * Any number of clients may watch and type; the terminal is as large as the smallest of their windows. Closing the
   * socket ends nothing. A client that reads slowly slows the program down and loses nothing. The server disconnects a
   * client that sends nothing for 90 s, not even `ping`. At most 32 sockets are open.
   *
   * - 404: no such terminal
   * - 429: too many sockets on terminals are open
   */
  'GET /system/terminal'(input: {
    session: TerminalName
    ticket: string & tags.MaxLength<200>
    cols?: Columns
    rows?: Rows
    cwd?: string & tags.MaxLength<400>
  }): Socket<TerminalClientFrame, TerminalServerFrame>
}
