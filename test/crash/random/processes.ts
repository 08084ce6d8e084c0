import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

interface Found {
  readonly pid: number
  readonly parent: number
  readonly words: string
}

const orElse = <T>(read: () => T, otherwise: T): T => {
  try {
    return read()
  } catch {
    return otherwise
  }
}

/** Every process with one of the texts in its command line or its working directory below the folder, with parents. */
const found = (folder: string, mark: string): { all: Map<number, Found>; ours: Found[] } => {
  const all = new Map<number, Found>()
  const ours: Found[] = []
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    if (!pid) continue
    const stat = orElse(() => readFileSync(`/proc/${pid}/stat`, 'utf8'), '')
    const [state, parent] = stat.slice(stat.lastIndexOf(') ') + 2).split(' ')
    if (!state || state === 'Z' || state === 'X') continue
    const words = orElse(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'), '').replaceAll('\0', ' ')
    const process = { pid, parent: Number(parent), words }
    all.set(pid, process)
    const cwd = orElse(() => readlinkSync(`/proc/${pid}/cwd`), '')
    if (words.includes(folder) || words.includes(mark) || cwd === folder || cwd.startsWith(`${folder}/`))
      ours.push(process)
  }
  return { all, ours }
}

/** The processes of earlier daemons on these folders that still run shortly after the present one has started. */
export const leftProcesses = async (
  folder: string,
  mark: string,
  keep: readonly number[],
  withinMs = 2_000,
): Promise<string[]> => {
  for (const until = performance.now() + withinMs; ;) {
    const { all, ours } = found(folder, mark)
    const belongs = (pid: number): boolean => keep.includes(pid) || (all.has(pid) && belongs(all.get(pid)!.parent))
    const left = ours.filter(({ pid }) => !belongs(pid)).map(({ pid, words }) => `${pid} ${words.slice(0, 200)}`)
    if (!left.length || performance.now() > until) return left
    await delay(20)
  }
}
