import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ownEnv, run } from '../../../sdk/node/programs/run.js'

/** The cards of this machine, as far as a model can run on them. */
export interface CardsFound {
  readonly gpu: 'granted' | 'unsupported' | 'absent'
  readonly cards: number
  readonly gpuMemoryBytes: number
  readonly gpuFreeBytes: number
}

const MIB = 1024 * 1024
const WITHIN = 10_000

/** What a program of the machine prints; undefined where it is not there, or fails. */
const printed = async (
  program: string | undefined,
  args: readonly string[],
  signal: AbortSignal,
): Promise<string | undefined> => {
  if (program === undefined) return undefined
  try {
    const { code, stdout, stderr } = await run(program, args, {
      cwd: '/',
      env: await ownEnv(),
      signal,
      timeoutMs: WITHIN,
    })
    return code === 0 ? `${stdout.toString()}\n${stderr}` : undefined
  } catch {
    return undefined
  }
}

/** Whether the program that serves local models is there and starts. */
export const hasModelServer = async (program: string | undefined, signal: AbortSignal): Promise<boolean> =>
  (await printed(program, ['--version'], signal)) !== undefined

/** Where the cards of a machine are found. */
export interface CardSources {
  readonly sys: string
  /** The program that says how much memory the cards have. */
  readonly meter: string | undefined
  /** The program that serves models. */
  readonly server: string | undefined
}

/** Measures the cards that the program that serves models can use. */
export const measureCards = async ({ sys, meter, server }: CardSources, signal: AbortSignal): Promise<CardsFound> => {
  const asked = ['--query-gpu=memory.total,memory.free', '--format=csv,noheader,nounits']
  const memory = await printed(meter, asked, signal)
  const rows = [...(memory ?? '').matchAll(/^[ \t]*(\d+)[ \t]*,[ \t]*(\d+)[ \t\r]*$/gm)].map(([, total, free]) => [
    Number(total),
    Number(free),
  ])
  const devices = rows.length > 0 ? await printed(server, ['--list-devices'], signal) : undefined
  if (rows.length > 0 && /^[ \t]*(CUDA|Vulkan|ROCm|SYCL)\d+:/m.test(devices ?? '')) {
    const sum = (at: 0 | 1) => rows.reduce((bytes, row) => bytes + row[at]! * MIB, 0)
    return { gpu: 'granted', cards: rows.length, gpuMemoryBytes: sum(0), gpuFreeBytes: sum(1) }
  }
  const none = { cards: 0, gpuMemoryBytes: 0, gpuFreeBytes: 0 }
  return { ...none, gpu: rows.length > 0 || (await hasDisplayController(sys)) ? 'unsupported' : 'absent' }
}

const hasDisplayController = async (sys: string): Promise<boolean> => {
  const folder = join(sys, 'bus', 'pci', 'devices')
  const devices = await readdir(folder).catch(() => [])
  const classes = await Promise.all(devices.map(each => readFile(join(folder, each, 'class'), 'utf8').catch(() => '')))
  return classes.some(each => each.startsWith('0x03'))
}
