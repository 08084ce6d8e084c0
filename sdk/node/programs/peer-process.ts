import { createHash, randomBytes } from 'node:crypto'
import { readFile, readlink } from 'node:fs/promises'
import { refuse } from '../../refusal.js'
import { contains } from '../files/paths.js'

const DEEPEST = 1024
const HOW = 'run it in a terminal of your own, outside walls and containers'

/** A process as `/proc` shows it; all fields come from one read, so that they belong to the same process. */
interface ProcessStatus {
  readonly name: string
  readonly parent: number
  readonly users: readonly number[]
  /** The number of process namespaces in which it has a pid, from that of this `/proc` inwards. */
  readonly namespaces: number
}

/** A random text that a peer must take as its name. */
export const newChallenge = (): string => randomBytes(16).toString('base64url')

/**
 * The process name that answers a challenge; only a process's own threads can set its name. It depends on the socket's
 * path, so that another socket cannot relay the challenge of this one.
 */
export const nameFor = (challenge: string, socket: string): string =>
  createHash('sha256').update(`${challenge}\n${socket}`).digest('base64url').slice(0, 15)

/** Whether `/proc` shows the processes of this namespace. */
export const showsProcesses = async (): Promise<boolean> => {
  const own = await statusOf(process.pid)
  return own?.namespaces === 1 && own.users.length > 0
}

/**
 * Refuses a peer unless the process it claims to be has the requested name, belongs to this user and process namespace,
 * and was not started by this process or by a tmux server that works in `folder`.
 */
export const assertPeer = async (pid: unknown, name: string, folder: string): Promise<void> => {
  const found = typeof pid === 'number' && Number.isSafeInteger(pid) && pid > 0 ? await statusOf(pid) : undefined
  if (found?.name !== name) {
    const expected = 'expected a program of this process namespace with the name it was asked to take'
    return refuse('forbidden', `${expected}, found none; ${HOW}`)
  }
  if (found.namespaces !== 1) {
    const found = 'found one of another namespace'
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
