import type { ForwardedProgram } from '../preview/store.js'
import type { ScannedPort, SocketTaker } from '../scan/scan.js'

const holds = ({ pid, began }: ForwardedProgram, { holders }: SocketTaker): boolean =>
  pid !== undefined && holders.some(each => each.pid === pid && each.began === began)

/**
 * Whether what listens is still what was forwarded: the same process, the same socket, or what the same terminal,
 * extension program or conversation started. It holds for every socket that takes connections at the port.
 */
export const isSameProgram = (forward: ForwardedProgram, { takers }: ScannedPort, boot: string): boolean =>
  takers.every(
    taker =>
      (forward.boot === boot && (forward.inodes.includes(taker.inode) || holds(forward, taker)))
      || (forward.starter !== undefined && taker.starter === forward.starter),
  )

/** Whether the very process that was forwarded listens; where the system does not show it, the very socket. */
export const isSameProcess = (forward: ForwardedProgram, { takers }: ScannedPort, boot: string): boolean =>
  forward.boot === boot
  && takers.every(taker => (forward.pid === undefined ? forward.inodes.includes(taker.inode) : holds(forward, taker)))
