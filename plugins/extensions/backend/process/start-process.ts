import { spawn, type ChildProcess } from 'node:child_process'
import type { Duplex, Readable } from 'node:stream'
import { lowerPriority } from '../../../../sdk/node/programs/priority.js'
import { programFile } from '../../../../sdk/node/programs/package.js'
import { NODE, nodeMounts } from '../../../../sdk/node/wall/node-mounts.js'
import { tightlyWalled } from '../../../../sdk/node/wall/tight.js'
import type { WallKind } from '../../../../sdk/node/wall/wall.js'
import type { RunnableExtension } from '../../runtime.js'
import type { BackendLimits } from './limits.js'

/** The paths of an extension's code and data, as its process sees them. */
export const INSIDE = { dir: '/extension', dataDir: '/data', runner: '/runtime/runner.js' } as const

/** How processes of backends are started. */
export interface ProcessPlace {
  /** The daemon's data folder. */
  readonly data: string
  /** For tests. */
  readonly wall?: WallKind
}

/** A started process with its pipe. */
export interface StartedProcess {
  readonly child: ChildProcess
  readonly pid: number
  readonly pipe: Duplex
  readonly output: readonly [Readable, Readable]
}

/** Why no backend runs on this machine. */
export const UNCONTAINED = 'its backend cannot be contained on this machine: install bubblewrap'

const RUNNER = programFile('sdk/node/extension/runner.js')

/** Node's permissions: the process may only read its code and write its data. */
const flags = ({ heapMiB }: BackendLimits): string[] => [
  '--permission',
  `--allow-fs-read=${INSIDE.runner}`,
  `--allow-fs-read=${INSIDE.dir}`,
  `--allow-fs-read=${INSIDE.dataDir}`,
  `--allow-fs-write=${INSIDE.dataDir}`,
  '--no-experimental-sqlite',
  '--disable-warning=SecurityWarning',
  '--disable-sigusr1',
  `--max-old-space-size=${heapMiB}`,
]

const environment = (): { [name: string]: string } => ({
  TZ: process.env.TZ ?? 'UTC',
  LANG: process.env.LANG ?? 'C.UTF-8',
  NODE_ENV: 'production',
})

/** Starts the process of a backend behind its wall; undefined: this machine cannot build one. */
export const startProcess = async (
  { dir, dataDir }: Pick<RunnableExtension, 'dir' | 'dataDir'>,
  place: ProcessPlace,
  limits: BackendLimits,
): Promise<StartedProcess | undefined> => {
  const command = await tightlyWalled(
    {
      data: place.data,
      program: nodeMounts(),
      read: [
        { from: RUNNER, to: INSIDE.runner },
        { from: dir, to: INSIDE.dir },
      ],
      write: [{ from: dataDir, to: INSIDE.dataDir }],
      cwd: INSIDE.dataDir,
      env: environment(),
      limits: { data: limits.mapped, openFiles: limits.openFiles, fileSize: limits.fileSize },
    },
    NODE,
    [...flags(limits), INSIDE.runner],
    place.wall,
  )
  if (!command) return undefined
  const child = spawn(command.program, command.args, {
    cwd: '/',
    env: { ...command.env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  if (child.pid === undefined) {
    await new Promise((_, failed) => child.once('error', failed))
    return undefined
  }
  lowerPriority(child.pid)
  return {
    child,
    pid: child.pid,
    pipe: child.stdio[3] as Duplex,
    output: [child.stdout!, child.stderr!],
  }
}
