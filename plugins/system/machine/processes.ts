import { readdir, readFile, readlink } from 'node:fs/promises'
import { contains } from '../../../sdk/node/files/paths.js'
import { ownEnv, ownProgram, run } from '../../../sdk/node/programs/run.js'
import type { OwnedProcess, ProcessUse } from './contract.js'

/** A process as the system reports it. */
export interface Seen {
  readonly pid: number
  readonly parent: number
  readonly name: string
  /** Seconds of processor time since it began. */
  readonly cpuSeconds: number
  readonly rssBytes: number
  /** Distinguishes it from an earlier process with the same pid. */
  readonly began: string
}

const SHOWN = 20
/** Units of processor time in a second on Linux (sysconf(3), _SC_CLK_TCK). */
const TICKS = 100
const PAGE = 4096
const NAMED = 64
const AT_ONCE = 64

/** Every process that this user can see. */
export const seenProcesses = async (): Promise<Seen[]> => (process.platform === 'linux' ? fromProc() : fromPs())

const fromProc = async (): Promise<Seen[]> => {
  const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name))
  const seen: Seen[] = []
  for (let at = 0; at < pids.length; at += AT_ONCE) {
    // It has ended meanwhile.
    const texts = await Promise.all(
      pids.slice(at, at + AT_ONCE).map(pid => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')),
    )
    seen.push(...texts.flatMap(text => parseStat(text) ?? []))
  }
  return seen
}

/** One line of `/proc/<pid>/stat` (proc(5)); the name in it may hold brackets and blanks. */
export const parseStat = (text: string): Seen | undefined => {
  const [, pid, name, rest = ''] = /^(\d+) \(([^]*)\) ([^]*)$/.exec(text) ?? []
  if (pid === undefined || name === undefined) return undefined
  // Counted from field 3, the state.
  const fields = rest.trim().split(' ')
  const [user, system, rss] = [fields[11], fields[12], fields[21]].map(Number)
  return {
    pid: Number(pid),
    parent: Number(fields[1]),
    name: named(name),
    cpuSeconds: (user! + system!) / TICKS,
    rssBytes: rss! * PAGE,
    began: fields[19]!,
  }
}

const fromPs = async (): Promise<Seen[]> => {
  const program = await ownProgram('ps')
  if (!program) return []
  const { stdout } = await run(program, ['-axo', 'pid=,ppid=,rss=,time=,lstart=,comm='], {
    cwd: '/',
    env: await ownEnv({ LC_ALL: 'C' }),
    timeoutMs: 5000,
  })
  return stdout
    .toString()
    .split('\n')
    .flatMap(line => parsePs(line) ?? [])
}

/** One line of `ps`: number, parent, KiB, processor time, when it began (five words), path. */
export const parsePs = (line: string): Seen | undefined => {
  const [, pid, parent, rss, time, began, path = ''] =
    /^\s*(\d+)\s+(\d+)\s+(\d+)\s+([\d:.-]+)\s+((?:\S+\s+){4}\S+)\s+(.*)$/.exec(line) ?? []
  if (pid === undefined) return undefined
  const cpuSeconds = time!.split(/[:-]/).reduce((sum, part) => sum * 60 + Number(part), 0)
  return {
    pid: Number(pid),
    parent: Number(parent),
    name: named(path.split('/').at(-1)!),
    cpuSeconds,
    rssBytes: Number(rss) * 1024,
    began: began!,
  }
}

const named = (name: string): string => name.slice(0, NAMED).toWellFormed() || '?'

/** The largest processes between two measurements, each with its owner. */
export const largest = (
  before: readonly Seen[],
  after: readonly Seen[],
  seconds: number,
  daemon: number,
  owned: readonly OwnedProcess[],
): ProcessUse[] => {
  const earlier = new Map(before.map(seen => [seen.pid, seen]))
  const whose = ownersOf(after, daemon, owned)
  return after
    .map(seen => {
      const then = earlier.get(seen.pid)
      const spent = seen.cpuSeconds - (then?.began === seen.began ? then.cpuSeconds : 0)
      return {
        pid: seen.pid,
        name: seen.name,
        ...whose(seen),
        cpuPct: percent(spent, seconds),
        rssBytes: seen.rssBytes,
      }
    })
    .sort((one, other) => other.cpuPct - one.cpuPct || other.rssBytes - one.rssBytes)
    .slice(0, SHOWN)
}

/** A share in percent, to a tenth. */
export const percent = (part: number, whole: number): number =>
  whole > 0 ? Math.max(0, Math.round((part / whole) * 1000) / 10) : 0

const SERVER = 'tmux: server'
const BROWSER = /^(?:chrom|headless_shell)/

/** The server that keeps terminals alive: it outlives the daemon and is recognized by its working folder. */
export const terminalServers = async (seen: readonly Seen[], folder: string): Promise<OwnedProcess[]> => {
  const servers = seen.filter(({ name }) => name === SERVER)
  const own = await Promise.all(
    servers.map(({ pid }) =>
      readlink(`/proc/${pid}/cwd`).then(
        cwd => contains(folder, cwd),
        () => false,
      ),
    ),
  )
  return servers.filter((_, at) => own[at]).map(({ pid }) => ({ pid, origin: 'terminal' }))
}

export type Whose = Omit<OwnedProcess, 'pid'>

/** The owner of a process is that of its nearest ancestor that a group reported. */
export const ownersOf = (
  seen: readonly Seen[],
  daemon: number,
  owned: readonly OwnedProcess[],
): ((process: Seen) => Whose) => {
  const parents = new Map(seen.map(({ pid, parent }) => [pid, parent]))
  const roots = new Map<number, Whose>([
    [daemon, { origin: 'daemon' }],
    ...owned.map(({ pid, ...whose }) => [pid, whose] as const),
  ])
  return ({ pid, name }) => {
    const way = new Set<number>()
    for (let at: number | undefined = pid; at !== undefined && !way.has(at); at = parents.get(at)) {
      const whose = roots.get(at)
      // Of the daemon's own child processes only browsers have this name.
      if (whose) return whose.origin === 'daemon' && BROWSER.test(name) ? { origin: 'browser' } : whose
      way.add(at)
    }
    return { origin: 'other' }
  }
}
