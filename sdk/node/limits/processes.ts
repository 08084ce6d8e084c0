import { readdirSync, readFileSync, readlinkSync, statfsSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** What everything on this machine uses, which is at least what one turn does. */
export interface GroupUse {
  readonly processes: number
  readonly memory: number
  readonly openFiles: number
  readonly pseudoTerminals: number
}

const textOf = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** A line of proc(5) such as `RssAnon:     1234 kB`, in bytes. */
const kilobytes = (text: string, name: string): number =>
  Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024

/** Four short files: cheap enough for many times a second. */
export const machineUse = (): GroupUse => {
  const meminfo = textOf('/proc/meminfo')
  return {
    processes: Number(textOf('/proc/loadavg').split(/[ /]/)[4] ?? 0),
    // What is available can be taken back from caches; memory of programs and of memory file systems cannot.
    memory:
      kilobytes(meminfo, 'MemTotal')
      - kilobytes(meminfo, 'MemAvailable')
      + kilobytes(meminfo, 'SwapTotal')
      - kilobytes(meminfo, 'SwapFree'),
    openFiles: Number(textOf('/proc/sys/fs/file-nr').split('\t')[0] ?? 0),
    pseudoTerminals: Number(textOf('/proc/sys/kernel/pty/nr')),
  }
}

let ownProc: number | undefined

/**
 * The /proc of the wall that a process builds, as a path: it lists what runs behind the wall and nothing else.
 *
 * Undefined while the wall is being built, when it is over, and where the system does not show it.
 */
export const procBehind = (pid: number): string | undefined => {
  try {
    ownProc ??= statSync('/proc').dev
    for (const child of readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)) {
      const proc = `/proc/${child}/root/proc`
      // Until the wall stands its first process sees the machine's own.
      if (statSync(proc).dev !== ownProc) return proc
    }
  } catch {
    // It ended meanwhile.
  }
  return undefined
}

/** The processes of a wall, as folders of its /proc. */
export const processesOf = (proc: string): string[] => {
  try {
    return readdirSync(proc)
      .filter(name => name.charCodeAt(0) <= 57 && Number(name) > 0)
      .map(name => `${proc}/${name}`)
  } catch {
    return []
  }
}

/** How many threads a process has. */
export const threadsOf = (folder: string): number => {
  try {
    return statSync(`${folder}/task`).nlink - 2
  } catch {
    return 0
  }
}

/** How many files a process holds open. */
export const filesOf = (folder: string): number => {
  try {
    // Since Linux 6.2 the size says it.
    return statSync(`${folder}/fd`).size || readdirSync(`${folder}/fd`).length
  } catch {
    return 0
  }
}

/** The device of the side that opens a pseudo-terminal: 5, 2 (Documentation/admin-guide/devices.txt). */
const PTMX = (5 << 8) | 2

/** How many pseudo-terminals a wall has, whose /dev/pts is its own. */
export const terminalsBehind = (proc: string): number => {
  try {
    return readdirSync(join(proc, '../dev/pts')).filter(name => /^\d+$/.test(name)).length
  } catch {
    return 0
  }
}

/** How many pseudo-terminals a process opened, in whatever file system: a program may have mounted one of its own. */
export const terminalsOf = (folder: string): number => {
  try {
    return readdirSync(`${folder}/fd`).filter(
      name => statSync(`${folder}/fd/${name}`, { throwIfNoEntry: false })?.rdev === PTMX,
    ).length
  } catch {
    return 0
  }
}

/** What a process holds in memory and in swap, pages it shares with others included. */
export const heldBy = (folder: string): number => {
  const status = textOf(`${folder}/status`)
  return kilobytes(status, 'RssAnon') + kilobytes(status, 'RssShmem') + kilobytes(status, 'VmSwap')
}

/** A process's part of what it holds: a page shared by four counts a quarter for each. Slow for large processes. */
export const shareOf = async (folder: string): Promise<number> => {
  const rollup = await readFile(`${folder}/smaps_rollup`, 'utf8').catch(() => '')
  if (!rollup.includes('Pss_Anon')) return heldBy(folder)
  return kilobytes(rollup, 'Pss_Anon') + kilobytes(rollup, 'Pss_Shmem') + kilobytes(rollup, 'SwapPss')
}

/** `<id> <parent> <device> <root> <place> …` of proc(5), `/proc/<pid>/mountinfo`. */
const tmpfsOf = (folder: string): Map<string, string> => {
  const found = new Map<string, string>()
  for (const line of textOf(`${folder}/mountinfo`).split('\n')) {
    const [, , device = '', , place = ''] = line.split(' ')
    if (line.includes(' - tmpfs ')) found.set(device, place)
  }
  return found
}

const mountsSeenBy = (folder: string): string | undefined => {
  try {
    return readlinkSync(`${folder}/ns/mnt`)
  } catch {
    return undefined
  }
}

/**
 * What lies in the memory file systems of a wall's own, such as its /dev/shm, and in those that programs behind it
 * mounted in namespaces of their own, such as containers.
 */
export const tmpfsBehind = (proc: string): number => {
  const counted = new Set(tmpfsOf('/proc/self').keys())
  const looked = new Set<string>()
  let bytes = 0
  for (const folder of processesOf(proc)) {
    const namespace = mountsSeenBy(folder)
    if (namespace === undefined || looked.has(namespace)) continue
    looked.add(namespace)
    for (const [device, place] of tmpfsOf(folder)) {
      if (counted.has(device)) continue
      try {
        const { blocks, bfree, bsize } = statfsSync(join(folder, 'root', place))
        bytes += (blocks - bfree) * bsize
        counted.add(device)
      } catch {
        // Something else was mounted over it.
      }
    }
  }
  return bytes
}
