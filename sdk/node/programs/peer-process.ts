import { createHash, randomBytes } from 'node:crypto'
import { readFile, readlink } from 'node:fs/promises'
import { refuse } from '../../refusal.js'
import { contains } from '../files/paths.js'

const DEEPEST = 1024
const HOW = 'run it in a terminal of your own, outside walls and containers'

/** A process as `/proc` shows it, read at once, so that all fields are of one process. */
interface ProcessStatus {
  readonly name: string
  readonly parent: number
  readonly users: readonly number[]
  /** In how many process namespaces it has a number, counted from the one of this `/proc`. */
  readonly namespaces: number
}

/** A random text that a peer has to show. */
export const newChallenge = (): string => randomBytes(16).toString('base64url')

/**
 * The name a process takes to show a challenge; only its own threads can change it. It depends on the path of the
 * socket, so that another socket cannot make a program show the challenge of this one.
 */
export const nameFor = (challenge: string, socket: string): string =>
  createHash('sha256').update(`${challenge}\n${socket}`).digest('base64url').slice(0, 15)

/** Whether `/proc` shows the processes of this one's namespace. */
export const showsProcesses = async (): Promise<boolean> => {
  const own = await statusOf(process.pid)
  return own?.namespaces === 1 && own.users.length > 0
}

/**
 * Refuses a peer that claims to be a process, unless that process has the name it was asked to take, is of this user
 * and this process namespace, and was started neither by this process nor by a tmux server that works in `folder`.
 */
export const assertPeer = async (pid: unknown, name: string, folder: string): Promise<void> => {
  const found = typeof pid === 'number' && Number.isSafeInteger(pid) && pid > 0 ? await statusOf(pid) : undefined
  if (found?.name !== name) {
    const expected = 'expected a program of this process namespace with the name it was asked to take'
    return refuse('forbidden', `${expected}, found none; ${HOW}`)
  }
  if (found.namespaces !== 1) {
    const found = 'found one of a namespace of its own'
    refuse('forbidden', `expected a program of this process namespace, ${found}; ${HOW}`)
  }
  const other = found.users.find(user => user !== process.getuid!())
  if (other !== undefined) {
    const own = process.getuid!()
    refuse('forbidden', `expected a program of user ${own}, found one of user ${other}; run it as user ${own}`)
  }
  if (pid !== process.pid && (await isStartedHere(found, folder))) {
    refuse('forbidden', `expected a program of a person, found one that this sandbox started; ${HOW}`)
  }
}

const statusOf = async (pid: number): Promise<ProcessStatus | undefined> => {
  const text = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const line = (field: string): string[] => new RegExp(`^${field}:\t(.*)$`, 'm').exec(text)?.[1]!.split('\t') ?? []
  return {
    name: line('Name')[0] ?? '',
    parent: Number(line('PPid')[0]),
    users: line('Uid').map(Number),
    namespaces: line('NSpid').length,
  }
}

const isStartedHere = async ({ parent }: ProcessStatus, folder: string): Promise<boolean> => {
  let pid = parent
  for (let depth = 0; depth < DEEPEST && pid > 0; depth++) {
    if (pid === process.pid) return true
    const found = await statusOf(pid)
    if (!found) return false
    const cwd = found.name.startsWith('tmux') ? await readlink(`/proc/${pid}/cwd`).catch(() => '/') : '/'
    if (contains(folder, cwd)) return true
    pid = found.parent
  }
  return false
}
