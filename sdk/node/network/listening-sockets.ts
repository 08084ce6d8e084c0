import { closeSync, existsSync, openSync, readdirSync, readlinkSync, readSync } from 'node:fs'
import { familyOf } from '../programs/family.js'
import { listeningSocketIn, loopbacksOf, type Listening, type ListeningSocket } from './socket-table.js'

/** A line of a socket table of IPv4 has this many bytes, one of IPv6 up to 30 more. */
const LINE = 150
const COUNTS = 4096

/** The files of one family in `/proc/<pid>/net`, and the word before its counts. */
const FAMILIES = [
  { table: 'tcp', counts: 'sockstat', word: 'TCP' },
  { table: 'tcp6', counts: 'sockstat6', word: 'TCP6' },
] as const

interface OpenFamily {
  readonly table: number
  readonly counts?: number
  readonly word: string
}

/**
 * The socket tables of a network, open: they stay those of this network when the process is gone through which they
 * were opened.
 *
 * The kernel lists the sockets that listen first. For the line after them it goes through a table whose size is that of
 * the machine's memory, which takes milliseconds, so nothing is read beyond what its counts say is there.
 */
export class SocketTables {
  readonly #families: OpenFamily[] = []

  /** Opens those in a folder `/proc/<pid>/net`. A machine without IPv6 has none for it. */
  constructor(folder: string) {
    try {
      for (const { table, counts, word } of FAMILIES) {
        if (table !== 'tcp' && !existsSync(`${folder}/${table}`)) continue
        const family = { word, table: openSync(`${folder}/${table}`, 'r') }
        this.#families.push(family)
        if (existsSync(`${folder}/${counts}`))
          this.#families.splice(-1, 1, { ...family, counts: openSync(`${folder}/${counts}`, 'r') })
      }
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** The sockets that listen now. */
  listening(): ListeningSocket[] {
    return this.#families.flatMap(listeningIn)
  }

  /** Closes the files, once. */
  close(): void {
    for (const { table, counts } of this.#families.splice(0))
      for (const fd of [table, counts]) if (fd !== undefined) closeSync(fd)
  }
}

/** The number of sockets in use (`/proc/net/sockstat`, proc(5)): those that listen or are connected. */
const usedIn = ({ counts, word }: OpenFamily): number => {
  if (counts === undefined) return Infinity
  const text = Buffer.alloc(COUNTS)
  const found = new RegExp(`^${word}: inuse (\\d+)`, 'm').exec(
    text.toString('latin1', 0, readSync(counts, text, 0, COUNTS, 0)),
  )
  return Number(found?.[1] ?? Infinity)
}

const listeningIn = (family: OpenFamily): ListeningSocket[] => {
  const most = usedIn(family)
  const found: ListeningSocket[] = []
  const piece = Buffer.alloc(LINE)
  let [at, rest, isHeader] = [0, '', true]
  while (found.length < most) {
    const read = readSync(family.table, piece, 0, LINE, at)
    if (read === 0) break
    at += read
    const lines = (rest + piece.toString('latin1', 0, read)).split('\n')
    rest = lines.pop()!
    for (const line of lines) {
      const socket = isHeader ? undefined : listeningSocketIn(line)
      if (!socket && !isHeader) return found
      if (socket) found.push(socket)
      isHeader = false
    }
  }
  return found
}

/** The listening sockets of the network of a process; none if it has ended. */
export const listeningSockets = (pid: number | 'self'): ListeningSocket[] => {
  let tables: SocketTables
  try {
    tables = new SocketTables(`/proc/${pid}/net`)
  } catch {
    return []
  }
  try {
    return tables.listening()
  } finally {
    tables.close()
  }
}

/** The sockets that a process holds, by inode. */
export const socketsHeldBy = (pid: number): string[] => {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap(fd => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? []
      } catch {
        return []
      }
    })
  } catch {
    return []
  }
}

/** A socket on which a process or one of its descendants listens. */
export type SocketOfFamily = ListeningSocket & Pick<Listening, 'elsewhere'>

const networkOf = (pid: number | 'self'): string | undefined => {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`)
  } catch {
    return undefined
  }
}

/** The sockets of a process and its descendants on which they listen. */
export const socketsOfFamily = (leader: number): SocketOfFamily[] => {
  const own = networkOf('self')
  const tables = new Map<string, Map<string, ListeningSocket>>()
  const found = new Map<string, SocketOfFamily>()
  for (const pid of familyOf(leader)) {
    const sockets = socketsHeldBy(pid)
    if (sockets.length === 0) continue
    const network = networkOf(pid)
    if (network === undefined) continue
    const table = tables.get(network) ?? new Map(listeningSockets(pid).map(socket => [socket.inode, socket]))
    tables.set(network, table)
    for (const inode of sockets) {
      const listening = table.get(inode)
      if (listening) found.set(inode, { ...listening, ...(network !== own && { elsewhere: true }) })
    }
  }
  return [...found.values()]
}

/** Where a process and its descendants listen for connections from this machine, lowest port first. */
export const listeningOf = (leader: number): Listening[] => {
  const found = new Map<number, Listening>()
  for (const { port, address, elsewhere } of socketsOfFamily(leader)) {
    const [host] = loopbacksOf(address)
    if (host && found.get(port)?.host !== '127.0.0.1') found.set(port, { port, host, ...(elsewhere && { elsewhere }) })
  }
  return [...found.values()].sort((a, b) => a.port - b.port)
}
