import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync, statfsSync, statSync } from 'node:fs'
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

/** The most that is read of the mounts of all namespaces, and the most memory file systems: more would take long. */
const MOST_OF_MOUNTS = 4 * 1024 * 1024
const MOST_TMPFS = 4000
const piece = Buffer.allocUnsafe(64 * 1024)

/** The bytes of a file as characters, hardly more than so many. */
const beginOf = (path: string, most: number): string => {
  let text = ''
  try {
    const file = openSync(path, 'r')
    try {
      for (let size = -1; size !== 0 && text.length < most; text += piece.toString('latin1', 0, size))
        size = readSync(file, piece)
    } finally {
      closeSync(file)
    }
  } catch {
    // It ended meanwhile.
  }
  return text
}

/** A path of proc(5), `/proc/<pid>/mountinfo`, in which blanks are written as numbers. */
export const writtenPath = (written: string): string =>
  written.replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))

/** `<id> <parent> <device> <root> <place> …` of proc(5), `/proc/<pid>/mountinfo`. */
const tmpfsIn = (mountinfo: string): [device: string, place: string][] =>
  mountinfo.split('\n').flatMap(line => {
    if (!line.includes(' - tmpfs ')) return []
    const [, , device = '', , place = ''] = line.split(' ')
    return [[device, writtenPath(place)]]
  })

/** A device such as `0:300` as stat(2) tells it. */
const numberOf = (device: string): number => {
  const [major = 0, minor = 0] = device.split(':').map(Number)
  return (major << 8) + (minor & 0xff) + (minor >> 8) * 2 ** 20
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
 * mounted in namespaces of their own, such as containers; `Infinity` where these are more than is looked at.
 */
export const tmpfsBehind = (proc: string): number => {
  const counted = new Set(tmpfsIn(textOf('/proc/self/mountinfo')).map(([device]) => device))
  const looked = new Set<string>()
  let [bytes, read, found] = [0, 0, 0]
  for (const folder of processesOf(proc)) {
    const namespace = mountsSeenBy(folder)
    if (namespace === undefined || looked.has(namespace)) continue
    looked.add(namespace)
    const mountinfo = beginOf(`${folder}/mountinfo`, MOST_OF_MOUNTS - read)
    read += mountinfo.length
    if (read >= MOST_OF_MOUNTS) return Infinity
    for (const [device, place] of tmpfsIn(mountinfo)) {
      if (counted.has(device)) continue
      if (++found > MOST_TMPFS) return Infinity
      try {
        const path = Buffer.concat([Buffer.from(`${folder}/root`), Buffer.from(place, 'latin1')])
        // Something else may be mounted over it.
        if (statSync(path).dev !== numberOf(device)) continue
        const { blocks, bfree, bsize } = statfsSync(path)
        bytes += (blocks - bfree) * bsize
        counted.add(device)
      } catch {
        // It is covered, or its process ended.
      }
    }
  }
  return bytes
}
