import { statfs } from 'node:fs/promises'
import { availableParallelism, totalmem } from 'node:os'
import type { LimitSettings } from '../../host.js'

/** What the programs of one turn may use; sizes in bytes. */
export interface WallLimits {
  /** Memory of all programs together, with what they hold in swap and in memory file systems. */
  readonly memory: number
  /** Processes and threads of all programs together. */
  readonly processes: number
  /** Files that all programs together hold open; no single one opens more. */
  readonly openFiles: number
  /** The size of one file. */
  readonly fileSize: number
  /** Pseudo-terminals that all programs together hold open: the machine has some thousand for everybody. */
  readonly pseudoTerminals: number
}

const GIB = 1024 ** 3
const UNITS: { readonly [unit: string]: number } = { MiB: 1024 ** 2, GiB: GIB, TiB: 1024 ** 4 }

const MEMORY_SHARE = 0.75
/**
 * A fork bomb slows a machine down by its processes for each processor: larger machines bear more, and build with more.
 */
const PROCESSES = { base: 1024, perProcessor: 128 }
const OPEN_FILES = 65_536
const TERMINALS = 256
/** Larger than images and archives that builds make; half a disk where that is less. */
const FILE_SIZE = 32 * GIB

const bytesOf = (size: string): number => {
  const unit = size.slice(-3)
  return Math.round(Number(size.slice(0, -3)) * (UNITS[unit] ?? 1))
}

/** The memory this process and its children may use at most: the machine's, or less in a container. */
const machineMemory = (): number => {
  const constrained = process.constrainedMemory() || Infinity
  return Math.min(totalmem(), constrained)
}

/** Half of the disk that holds a folder. */
const halfDisk = async (folder: string): Promise<number> => {
  const disk = await statfs(folder).catch(() => undefined)
  return disk && disk.blocks > 0 ? (disk.blocks * disk.bsize) / 2 : Infinity
}

/** The limits a deployment sets, and for each it leaves out one that suits builds on this machine. */
export const wallLimits = async (
  { memory, processes, openFiles, fileSize, pseudoTerminals }: LimitSettings,
  data: string,
): Promise<WallLimits> => ({
  memory: memory === undefined ? Math.round(machineMemory() * MEMORY_SHARE) : bytesOf(memory),
  processes: processes ?? PROCESSES.base + PROCESSES.perProcessor * availableParallelism(),
  openFiles: openFiles ?? OPEN_FILES,
  fileSize: Math.floor(fileSize === undefined ? Math.min(FILE_SIZE, await halfDisk(data)) : bytesOf(fileSize)),
  pseudoTerminals: pseudoTerminals ?? TERMINALS,
})
