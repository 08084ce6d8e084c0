import { readFileSync } from 'node:fs'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { listeningSockets, socketsOfFamily, type SocketOfFamily } from '../../../sdk/node/network/listening-sockets.js'
import type { ListeningSocket } from '../../../sdk/node/network/socket-table.js'
import type { SystemSockets, SeenProcess, SocketHolders } from './system-sockets.js'

const SAMPLE_MS = 2_000
const AT_ONCE = 32
const SOCKET = /^socket:\[(\d+)\]$/

interface Stat {
  readonly parent: number
  readonly began: string
}

/** `/proc/<pid>/stat` (proc(5)): the name in it may hold brackets and blanks. */
const statOf = (text: string): Stat => {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return { parent: Number(fields[1]), began: fields[19] ?? '' }
}

/** The socket tables and processes of Linux. */
export class LinuxMachine implements SystemSockets {
  readonly sampleMs = SAMPLE_MS
  readonly boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()

  sockets(): Promise<ListeningSocket[]> {
    return Promise.resolve(listeningSockets('self'))
  }

  family(pid: number): Promise<SocketOfFamily[]> {
    return Promise.resolve(socketsOfFamily(pid))
  }

  async began(pid: number): Promise<string | undefined> {
    return (await stat(pid))?.began
  }

  async holders(inodes: ReadonlySet<string>): Promise<SocketHolders> {
    const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name)).map(Number)
    const stats = new Map<number, Stat>()
    const holding = new Map<string, number[]>()
    for (let at = 0; at < pids.length; at += AT_ONCE)
      await Promise.all(
        pids.slice(at, at + AT_ONCE).map(async pid => {
          const [found, held] = await Promise.all([stat(pid), heldBy(pid, inodes)])
          if (found) stats.set(pid, found)
          for (const inode of held) holding.set(inode, [...(holding.get(inode) ?? []), pid])
        }),
      )
    const seen = new Map<number, SeenProcess>()
    for (const pid of new Set([...holding.values()].flat())) {
      const found = stats.get(pid)
      if (found) seen.set(pid, { pid, ...found, ...(await wordsOf(pid)) })
    }
    const byAge = (a: SeenProcess, b: SeenProcess) => Number(a.began) - Number(b.began) || a.pid - b.pid
    return {
      holders: new Map(
        [...holding].map(([inode, all]) => [inode, all.flatMap(pid => seen.get(pid) ?? []).sort(byAge)]),
      ),
      ancestry: pid => ancestryIn(pid, each => stats.get(each)?.parent),
    }
  }
}

/** A process and those above it, each once. */
export const ancestryIn = (pid: number, parentOf: (pid: number) => number | undefined): number[] => {
  const way: number[] = []
  for (let at: number | undefined = pid; at !== undefined && at > 0 && !way.includes(at); at = parentOf(at))
    way.push(at)
  return way
}

/** A process that has ended meanwhile has none. */
const stat = (pid: number): Promise<Stat | undefined> =>
  readFile(`/proc/${pid}/stat`, 'utf8').then(statOf, () => undefined)

const heldBy = async (pid: number, inodes: ReadonlySet<string>): Promise<Set<string>> => {
  const fds = await readdir(`/proc/${pid}/fd`).catch(() => [])
  const links = await Promise.all(fds.map(fd => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')))
  return new Set(links.map(link => SOCKET.exec(link)?.[1] ?? '').filter(inode => inodes.has(inode)))
}

const wordsOf = async (pid: number): Promise<Pick<SeenProcess, 'args' | 'cwd'>> => {
  const [line, cwd] = await Promise.all([
    readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''),
    readlink(`/proc/${pid}/cwd`).catch(() => undefined),
  ])
  return { args: line.split('\0').filter(Boolean), ...(cwd !== undefined && { cwd }) }
}
