import { readFile, statfs } from 'node:fs/promises'
import { cpus, freemem, totalmem } from 'node:os'
import type { DiskUse, MemoryUse } from './contract.js'

/** Time the processors spent since the machine began, in milliseconds. */
export interface CpuTimes {
  readonly busy: number
  readonly all: number
}

/** What all processors together have done so far. */
export const cpuTimes = (): CpuTimes =>
  cpus().reduce(
    ({ busy, all }, { times: { user, nice, sys, irq, idle } }) => {
      const worked = user + nice + sys + irq
      return { busy: busy + worked, all: all + worked + idle }
    },
    { busy: 0, all: 0 },
  )

const textOf = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '')

/** A figure of `/proc/meminfo`, in bytes. */
export const figureOf = (meminfo: string, name: string): number | undefined => {
  const kib = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(meminfo)?.[1]
  return kib === undefined ? undefined : Number(kib) * 1024
}

/** Memory of the machine, and what its limits leave to this process. */
export const memoryUse = async (): Promise<MemoryUse> => {
  const [meminfo, cgroups] = await Promise.all([textOf('/proc/meminfo'), textOf('/proc/self/cgroup')])
  const totalBytes = figureOf(meminfo, 'MemTotal') ?? totalmem()
  const usedBytes = Math.max(0, totalBytes - (figureOf(meminfo, 'MemAvailable') ?? freemem()))
  const limits = await Promise.all(limitFiles(cgroups).map(async file => Number((await textOf(file)).trim() || NaN)))
  // Without a limit the newer form says "max", and the older one a number beyond every machine.
  const limitBytes = Math.min(...limits.filter(limit => limit > 0 && limit < totalBytes))
  return { totalBytes, usedBytes, ...(Number.isFinite(limitBytes) && { limitBytes }) }
}

const ROOT = '/sys/fs/cgroup'

/** The files with the limits of a process: of its own group and of those above it (cgroups(7); both versions). */
export const limitFiles = (cgroups: string): string[] =>
  cgroups.split('\n').flatMap(line => {
    const [, id, controllers = '', path = ''] = /^(\d+):([^:]*):(\/.*)$/.exec(line) ?? []
    if (id === '0') return above(path).map(folder => `${ROOT}${folder}/memory.max`)
    return controllers.split(',').includes('memory')
      ? above(path).map(folder => `${ROOT}/memory${folder}/memory.limit_in_bytes`)
      : []
  })

/** A folder and all above it: inside a container only the upper ones may be there. */
const above = (path: string): string[] => {
  const parts = path.split('/').filter(Boolean)
  return parts.map((_, at) => `/${parts.slice(0, parts.length - at).join('/')}`).concat('')
}

/** Free space of the relevant disks; skips a disk that does not answer. */
export const diskUse = async (
  places: readonly (readonly [label: DiskUse['label'], path: string])[],
): Promise<DiskUse[]> => {
  const found = await Promise.all(
    places.map(async ([label, path]): Promise<DiskUse[]> => {
      const disk = await statfs(path).catch(() => undefined)
      return disk ? [{ label, totalBytes: disk.blocks * disk.bsize, freeBytes: disk.bavail * disk.bsize }] : []
    }),
  )
  return found.flat()
}
