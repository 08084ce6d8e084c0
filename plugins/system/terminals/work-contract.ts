import type { tags } from 'typia'
import type { ReachFolder } from '../../../sdk/reach.js'
import type { Millis, Ok, Text } from '../../../sdk/types.js'

/** The name of a session that a group started. */
export type WorkName = string & tags.Pattern<'^(?:agent|job|panel|proc)-[A-Za-z0-9_-]{1,58}$'>
/** A port of TCP. */
export type TcpPort = number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<65535>

/** One program of a session. */
export interface TerminalStep {
  /** The folder it runs in, as a workspace path; `.` is the root. */
  cwd: string
  /** The program and its arguments, which no shell reads. */
  program: string[] & tags.MinItems<1>
}
/** A variable of the environment. */
export interface TerminalVariable {
  name: string & tags.Pattern<'^[A-Za-z_][A-Za-z0-9_]*$'>
  value: string
}
/** A session that a group started. */
export interface TerminalWorkRow {
  name: WorkName
  /** What the group that started it calls it. */
  purpose: string
  running: boolean
  /** The exit code of its programs once they ended. */
  exitCode?: number
  endedAt?: Millis
  /** The first of its processes, while it runs. */
  pid?: number
  /** The port that its program was asked to listen on. */
  port?: TcpPort
}

/** The first process of a session. */
export interface TerminalProcess {
  name: string
  pid: number
}

/** Sessions that other groups run programs in: people see them as terminals. */
export interface TerminalWorkCalls {
  /**
   * Runs programs one after another in a session, behind the wall; the session keeps what they wrote for 24 h.
   *
   * A session of that name and purpose that runs is answered as it is; one that ended is replaced.
   */
  'terminals.start'(input: {
    name: WorkName
    label?: string & tags.MinLength<1> & tags.MaxLength<80>
    purpose: Text
    steps: TerminalStep[] & tags.MinItems<1>
    /** Run the steps behind one that failed too. */
    goOn?: boolean
    env?: TerminalVariable[]
    port?: TcpPort
    /** All that the programs see of the workspace; absent: the whole. */
    only?: ReachFolder[]
  }): TerminalWorkRow

  /**
   * Runs one program in a session; the group that asks has put it behind the wall already.
   *
   * A session of that name that ended is replaced. 409: a program runs in it.
   */
  'terminals.run'(input: {
    name: WorkName
    label?: string & tags.MinLength<1> & tags.MaxLength<80>
    purpose: Text
    /** The program and its arguments, which no shell reads. */
    command: string[] & tags.MinItems<1>
    /** Its whole environment. */
    env: TerminalVariable[]
    port?: TcpPort
  }): TerminalWorkRow

  /** The sessions that groups started. */
  'terminals.running'(): { sessions: TerminalWorkRow[] }

  /** The first process of every session that runs, also of people's shells. */
  'terminals.processes'(): { processes: TerminalProcess[] }

  /** Ends a session and its processes: SIGTERM and after 5 s SIGKILL. */
  'terminals.stop'(input: { name: WorkName }): Ok

  /** The last lines of a session, without credentials; empty when there is no such session. */
  'terminals.tail'(input: { name: WorkName; lines: number & tags.Type<'uint32'> & tags.Maximum<1000> }): {
    text: string
  }
}

/** The events for groups that run programs in terminal sessions. */
export interface TerminalEvents {
  /** The programs of a session ended; without an exit code the session was removed before it was known. */
  'terminal.ended': { name: string; purpose: string; exitCode?: number }
}
