import { ownEnv, run } from '../../../sdk/node/programs/run.js'
import type { ListeningSocket } from '../../../sdk/node/network/socket-table.js'
import { ancestryIn } from './linux.js'
import type { SystemSockets, SeenProcess, SocketHolders } from './system-sockets.js'

const SAMPLE_MS = 10_000
const PATIENCE_MS = 10_000

interface HeldSocket extends ListeningSocket {
  readonly pid: number
}

interface ListedProcess {
  readonly parent: number
  readonly began: string
  readonly args: readonly string[]
}

/** The fields of `lsof -F`, one a line: those of a process, then those of each of its files. */
export const parseLsof = (text: string): HeldSocket[] => {
  const found: HeldSocket[] = []
  let [pid, device, wild] = [0, '', '0.0.0.0']
  for (const line of text.split('\n')) {
    const value = line.slice(1)
    if (line[0] === 'p') pid = Number(value)
    if (line[0] === 'd') device = value
    if (line[0] === 't') wild = value === 'IPv6' ? '::' : '0.0.0.0'
    const [, address = '', port] = (line[0] === 'n' && /^(.*):(\d+)$/.exec(value)) || []
    if (port === undefined) continue
    const plain = address === '*' ? wild : address.replace(/^\[(.*)\]$/, '$1')
    found.push({ pid, port: Number(port), address: plain, inode: device })
  }
  return found
}

/** `ps -axo pid=,ppid=,lstart=,command=`: the start is five words. */
export const parseProcesses = (text: string): Map<number, ListedProcess> =>
  new Map(
    text.split('\n').flatMap(line => {
      const [, pid, parent, began, command = ''] = /^\s*(\d+)\s+(\d+)\s+((?:\S+\s+){4}\S+)\s+(.*)$/.exec(line) ?? []
      return pid === undefined
        ? []
        : [[Number(pid), { parent: Number(parent), began: began!, args: command.split(/\s+/) }] as const]
    }),
  )

/** The sockets and processes of a system without socket tables, through `lsof` and `ps`. */
export class LsofMachine implements SystemSockets {
  readonly sampleMs = SAMPLE_MS
  /** A process that began at another time is another one, also after a start of the machine. */
  readonly boot = 'lsof'
  readonly #lsof: string
  readonly #ps: string

  constructor(lsof: string, ps: string) {
    this.#lsof = lsof
    this.#ps = ps
  }

  sockets(): Promise<readonly ListeningSocket[]> {
    return this.#held()
  }

  async family(pid: number): Promise<readonly ListeningSocket[]> {
    const [held, all] = await Promise.all([this.#held(), this.#processes()])
    return held.filter(each => ancestryIn(each.pid, one => all.get(one)?.parent).includes(pid))
  }

  async began(pid: number): Promise<string | undefined> {
    return (await this.#processes()).get(pid)?.began
  }

  async holders(inodes: ReadonlySet<string>): Promise<SocketHolders> {
    const [held, all] = await Promise.all([this.#held(), this.#processes()])
    const own = held.filter(({ inode }) => inodes.has(inode))
    const folders = await this.#folders(new Set(own.map(({ pid }) => pid)))
    const seen = (pid: number): SeenProcess[] => {
      const found = all.get(pid)
      const cwd = folders.get(pid)
      return found ? [{ pid, ...found, ...(cwd !== undefined && { cwd }) }] : []
    }
    const byAge = (a: SeenProcess, b: SeenProcess) => Date.parse(a.began) - Date.parse(b.began) || a.pid - b.pid
    return {
      holders: new Map(
        [...Map.groupBy(own, ({ inode }) => inode)].map(([inode, sockets]) => [
          inode,
          [...new Set(sockets.map(({ pid }) => pid))].flatMap(seen).sort(byAge),
        ]),
      ),
      ancestry: pid => ancestryIn(pid, each => all.get(each)?.parent),
    }
  }

  async #held(): Promise<HeldSocket[]> {
    return parseLsof(await this.#run(this.#lsof, ['-nP', '-iTCP', '-sTCP:LISTEN', '-FpdtPn']))
  }

  async #processes(): Promise<Map<number, ListedProcess>> {
    return parseProcesses(await this.#run(this.#ps, ['-axo', 'pid=,ppid=,lstart=,command=']))
  }

  async #folders(pids: ReadonlySet<number>): Promise<Map<number, string>> {
    if (pids.size === 0) return new Map()
    const text = await this.#run(this.#lsof, ['-a', '-d', 'cwd', '-p', [...pids].join(','), '-Fpn'])
    const found = new Map<number, string>()
    let pid = 0
    for (const line of text.split('\n')) {
      if (line[0] === 'p') pid = Number(line.slice(1))
      if (line[0] === 'n') found.set(pid, line.slice(1))
    }
    return found
  }

  /** `lsof` fails where nothing is found: then it prints nothing. */
  async #run(program: string, args: readonly string[]): Promise<string> {
    const env = await ownEnv({ LC_ALL: 'C' })
    return (await run(program, args, { cwd: '/', env, timeoutMs: PATIENCE_MS })).stdout.toString()
  }
}
