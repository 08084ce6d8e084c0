import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Where the machine says what it has. */
export interface MachineFiles {
  readonly proc: string
  readonly sys: string
}

/** What this sandbox may use of the machine's memory. */
export interface MemoryFound {
  readonly memoryBytes: number
  readonly memoryCapped: boolean
}

/** From here on a limit of the older kind means that there is none. */
const UNLIMITED = 2 ** 62

/** Measures the memory, and the lowest limit of this process's group and those above it. */
export const measureMemory = async ({ proc, sys }: MachineFiles): Promise<MemoryFound> => {
  const [, total = '0'] = /^MemTotal:\s+(\d+) kB/m.exec(await readFile(join(proc, 'meminfo'), 'utf8')) ?? []
  const host = Number(total) * 1024
  const limits = await limitsOf(proc, join(sys, 'fs', 'cgroup'))
  const lowest = Math.min(host, ...limits)
  return { memoryBytes: lowest, memoryCapped: lowest < host }
}

const limitsOf = async (proc: string, root: string): Promise<number[]> => {
  const groups = await readFile(join(proc, 'self', 'cgroup'), 'utf8').catch(() => '')
  const unified = /^0::(\/.*)$/m.exec(groups)?.[1]
  const older = /^\d+:(?:[^:\n]*,)?memory(?:,[^:\n]*)?:(\/.*)$/m.exec(groups)?.[1]
  return [
    ...(unified === undefined ? [] : await readUp(root, unified, 'memory.max')),
    ...(older === undefined ? [] : await readUp(join(root, 'memory'), older, 'memory.limit_in_bytes')),
  ]
}

/** The limits in a file of a group and of those above it. */
const readUp = async (root: string, group: string, file: string): Promise<number[]> => {
  const found: number[] = []
  for (let at = group; ; at = dirname(at)) {
    const text = (await readFile(join(root, at, file), 'utf8').catch(() => '')).trim()
    if (/^\d+$/.test(text) && Number(text) < UNLIMITED) found.push(Number(text))
    if (at === '/' || at === '.') return found
  }
}
