import { readFile, realpath } from 'node:fs/promises'
import { homedir } from 'node:os'
import { isAbsolute, join, relative, resolve } from 'node:path'
import type { WallGrants } from '../../host.js'
import { dataFolders } from '../../node/files/state-folder.js'
import { isRunning } from '../../node/programs/is-running.js'
import { SELF } from '../terminal/own-name.js'
import { EXIT, CommandFailure, type Terminal } from '../verb.js'

/** The content of `daemon.json`, which a running daemon writes into its data folder. */
export interface Running {
  readonly url: string
  readonly pid: number
  /** The login socket; absent if local sign-in is off. */
  readonly socket?: string
  /** The workspace's real path. */
  readonly workspace: string
  readonly data: string
  /** Files and folders that the deployment makes visible behind every wall. */
  readonly grants?: WallGrants
  /** What its turns run behind; absent: an older daemon wrote the file. */
  readonly wall?: string
  /** Its process runs and did not answer in time. */
  readonly slow?: true
}

type Surroundings = Pick<Terminal, 'env' | 'cwd' | 'signal'>

const HEALTH_MS = 2000

/** The folder below which daemons keep their state. */
export const stateRoot = (env: Terminal['env']): string => {
  const given = env.XDG_STATE_HOME
  return join(given && isAbsolute(given) ? given : join(env.HOME || homedir(), '.local', 'state'), 'sandbox')
}

/** Finds the daemon: by data folder, by the current folder, or the only one running. */
export const findDaemon = async (terminal: Surroundings, data: string | undefined): Promise<Running> => {
  if (data) {
    const [found] = await live([resolve(terminal.cwd, data)], terminal.signal)
    return found
      ? answering(found)
      : none(`no daemon runs on the data folder ${data}; start one with "${SELF} serve --data ${data}"`)
  }
  const found = await runningDaemons(terminal)
  const here = await realpath(terminal.cwd)
  const holding = found
    .filter(({ workspace }) => within(workspace, here))
    .sort((a, b) => b.workspace.length - a.workspace.length)
  if (holding[0]) return answering(holding[0])
  if (found.length === 1) return answering(found[0]!)
  if (found.length === 0) none(`no daemon is running; start one with "${SELF} serve"`)
  const rows = found.map(({ url, workspace }) => `  ${url}  ${workspace}`).join('\n')
  return none(`${found.length} daemons are running and none serves this folder; choose one with --url:\n${rows}`)
}

/** Fails if nothing that is a daemon answers at an address. */
export const assertAnswers = async (url: string, { signal }: Pick<Surroundings, 'signal'>): Promise<void> => {
  const answer = await answerOf(url, signal)
  if (answer === 'none') none(`no daemon answers at ${url}`)
  if (answer === 'late') none(`what listens at ${url} did not answer within ${HEALTH_MS / 1000} s`)
}

/** The running daemon of this user on this machine at an address. */
export const daemonAt = async (terminal: Surroundings, url: string): Promise<Running | undefined> => {
  const { origin } = new URL(url)
  const found = (await runningDaemons(terminal)).find(daemon => new URL(daemon.url).origin === origin)
  return found && answering(found)
}

/** A daemon that answers; fails for one that is too busy to. */
const answering = (daemon: Running): Running =>
  daemon.slow
    ? none(
        `the daemon of ${daemon.workspace} at ${daemon.url} is slow: its process ${daemon.pid} runs but did not `
          + `answer within ${HEALTH_MS / 1000} s; try again in a moment`,
      )
    : daemon

/** The running daemon of a workspace, by its real path. */
export const daemonOn = async (terminal: Surroundings, workspace: string): Promise<Running | undefined> =>
  (await runningDaemons(terminal)).find(daemon => daemon.workspace === workspace)

const none = (message: string): never => {
  throw new CommandFailure(EXIT.noDaemon, message)
}

const within = (folder: string, path: string): boolean => {
  const way = relative(folder, path)
  return way === '' || (way !== '..' && !way.startsWith('../') && !isAbsolute(way))
}

/** Every running daemon of this user on this machine. */
export const runningDaemons = async ({ env, signal }: Surroundings): Promise<Running[]> => {
  return live(dataFolders(stateRoot(env)), signal)
}

const live = async (folders: readonly string[], signal: AbortSignal): Promise<Running[]> => {
  const daemons = await Promise.all(
    folders.map(async folder => {
      const daemon = described(folder, await readFile(join(folder, 'daemon.json'), 'utf8').catch(() => ''))
      if (!daemon || !isRunning(daemon.pid)) return []
      const answer = await answerOf(daemon.url, signal)
      return answer === 'none' ? [] : [{ ...daemon, ...(answer === 'late' && { slow: true as const }) }]
    }),
  )
  return daemons.flat()
}

const described = (data: string, text: string): Running | undefined => {
  try {
    const { url, pid, socket, workspace, grants, wall } = JSON.parse(text) as { [key: string]: unknown }
    if (typeof url !== 'string' || typeof pid !== 'number' || typeof workspace !== 'string') return undefined
    return URL.canParse(url) && Number.isInteger(pid) && pid > 0
      ? {
          url,
          pid,
          workspace,
          data,
          ...(isGrants(grants) && { grants }),
          ...(typeof wall === 'string' && { wall }),
          ...(typeof socket === 'string' && { socket }),
        }
      : undefined
  } catch {
    return undefined
  }
}

const isGrants = (value: unknown): value is WallGrants =>
  ['read', 'write'].every(name => Array.isArray((value as { [name: string]: unknown } | undefined)?.[name]))

const answerOf = async (url: string, signal: AbortSignal): Promise<'ok' | 'late' | 'none'> => {
  try {
    const response = await fetch(new URL('/health', url), {
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(HEALTH_MS)]),
    })
    await response.body?.cancel()
    return response.ok ? 'ok' : 'none'
  } catch (error) {
    signal.throwIfAborted()
    return (error as Error).name === 'TimeoutError' ? 'late' : 'none'
  }
}
