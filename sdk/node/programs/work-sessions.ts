import type { Api } from '../../api.js'
import type { Input, Reply } from '../../contract.js'
import type { Host } from '../../host.js'
import type { Reach, ReachFolder } from '../../reach.js'
import { refuse } from '../../refusal.js'
import { listeningOf } from '../network/listening-sockets.js'
import type { Listening } from '../network/socket-table.js'

/** A session that a group started. */
export type WorkSession = Reply<Api, 'terminals.start'>

type SessionsHost = Pick<Host, 'call' | 'serves'>

/** Variables of every program that is started for somebody who may not be there to answer it. */
const QUIET: { readonly [name: string]: string } = {
  COREPACK_ENABLE_DOWNLOAD_PROMPT: '0',
  npm_config_fund: 'false',
  npm_config_update_notifier: 'false',
  npm_config_yes: 'true',
  PIP_DISABLE_PIP_VERSION_CHECK: '1',
  PIPENV_VENV_IN_PROJECT: '1',
  POETRY_VIRTUALENVS_IN_PROJECT: 'true',
  YARN_ENABLE_IMMUTABLE_INSTALLS: 'false',
}

/** The folders that programs of a caller see; undefined: the whole workspace. */
export const visibleFolders = (reach: Reach): ReachFolder[] | undefined =>
  reach?.map(({ path, access }) => ({ path, access }))

/** Starts programs in a terminal of group system, or answers the one that runs. */
export const startSession = async (
  host: SessionsHost,
  { env = {}, ...start }: Omit<Input<Api, 'terminals.start'>, 'env'> & { env?: { readonly [name: string]: string } },
): Promise<WorkSession> => {
  if (!(await host.serves('terminals.start'))) return refuse('unavailable', 'terminals are not served: group system')
  const variables = Object.entries({ ...QUIET, ...env }).map(([name, value]) => ({ name, value }))
  return host.call('terminals.start', { ...start, env: variables })
}

/** The terminals that groups started, by name; none without group system. */
export const sessionsByName = async (host: SessionsHost): Promise<ReadonlyMap<string, WorkSession>> => {
  if (!(await host.serves('terminals.running'))) return new Map()
  const { sessions } = await host.call('terminals.running')
  return new Map(sessions.map(session => [session.name, session]))
}

/** Where the programs of a session listen: the port they were asked for first. */
export const serverOfSession = ({ running, pid, port }: WorkSession): Listening | undefined => {
  if (!running || pid === undefined) return undefined
  const all = listeningOf(pid)
  return all.find(each => each.port === port) ?? all[0]
}
