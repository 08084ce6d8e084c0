import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

const MOST_PROCESSES = 5000
const MOST_COMMAND = 200

/** A process of this machine. */
export interface MachineProcess {
  readonly pid: number
  readonly command: string
}

const linkOf = (path: string): string | undefined => {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      .replaceAll('\0', ' ')
      .trim()
      .slice(0, MOST_COMMAND)
      .toWellFormed()
  } catch {
    return ''
  }
}

const descriptorsOf = (pid: number): string[] => {
  try {
    return readdirSync(`/proc/${pid}/fd`)
  } catch {
    // The process has ended, or belongs to another user.
    return []
  }
}

const others = (): number[] => {
  try {
    return readdirSync('/proc')
      .slice(0, MOST_PROCESSES)
      .flatMap(name => (/^\d+$/.test(name) && Number(name) !== process.pid ? [Number(name)] : []))
  } catch {
    // Only Linux has this folder.
    return []
  }
}

/** The process that has a file open, other than this one; undefined also where the system does not say. */
export const processHolding = (path: string): MachineProcess | undefined => {
  const pid = others().find(each => descriptorsOf(each).some(name => linkOf(`/proc/${each}/fd/${name}`) === path))
  return pid === undefined ? undefined : { pid, command: commandOf(pid) }
}

/** The processes that work in a folder or below it, other than this one. */
export const processesIn = (folder: string): MachineProcess[] =>
  others().flatMap(pid => {
    const cwd = linkOf(`/proc/${pid}/cwd`)
    return cwd !== undefined && (cwd === folder || cwd.startsWith(`${folder}/`))
      ? [{ pid, command: commandOf(pid) }]
      : []
  })
