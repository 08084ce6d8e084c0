import { refuse, type Host, type Reach, type Input, type ReachFolder } from '../../../sdk/index.js'
import type { TerminalWorkRow, System } from '../../system/contract.js'

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
  { env = {}, ...start }: Omit<Input<System, 'terminals.start'>, 'env'> & { env?: { readonly [name: string]: string } },
): Promise<TerminalWorkRow> => {
  if (!(await host.serves('terminals.start'))) return refuse('unavailable', 'terminals are not served: group system')
  const variables = Object.entries({ ...QUIET, ...env }).map(([name, value]) => ({ name, value }))
  return host.call('terminals.start', { ...start, env: variables })
}

/** The terminals that groups started, by name; none without group system. */
export const sessionsByName = async (host: SessionsHost): Promise<ReadonlyMap<string, TerminalWorkRow>> => {
  if (!(await host.serves('terminals.running'))) return new Map()
  const { sessions } = await host.call('terminals.running')
  return new Map(sessions.map(session => [session.name, session]))
}
