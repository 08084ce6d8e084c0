import type { SocketOfFamily } from '../../../sdk/node/network/listening-sockets.js'
import type { ListeningSocket } from '../../../sdk/node/network/socket-table.js'

/** A process as the system shows it. */
export interface SeenProcess {
  readonly pid: number
  readonly parent: number
  /** When it began, in the system's own form: a later process with its pid has another. */
  readonly began: string
  readonly args: readonly string[]
  /** The folder it is in; absent: not readable. */
  readonly cwd?: string
}

/** The processes that hold sockets. */
export interface SocketHolders {
  /** By the inode of a socket, the oldest process first. */
  readonly holders: ReadonlyMap<string, readonly SeenProcess[]>
  /** A process and those that started it, the nearest first. */
  ancestry(pid: number): readonly number[]
}

/** How this system shows its sockets and processes. */
export interface SystemSockets {
  /** How often its sockets may be read. */
  readonly sampleMs: number
  /** The sockets of the machine's own network on which something listens. */
  sockets(): Promise<readonly ListeningSocket[]>
  /** Who holds these sockets. */
  holders(inodes: ReadonlySet<string>): Promise<SocketHolders>
  /** The sockets on which a process and its descendants listen. */
  family(pid: number): Promise<readonly SocketOfFamily[]>
  /** When a process began; undefined: there is none. */
  began(pid: number): Promise<string | undefined>
  /** A name of this start of the machine: pids and inodes of another one mean nothing. */
  readonly boot: string
}
