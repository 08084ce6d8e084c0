import { posix } from 'node:path'
import { pathOfRepo, Refusal, type Host } from '../../../sdk/index.js'
import type { OpenRepo } from '../repositories/repositories.js'
import type { AskedRemote } from './asked-remote.js'
import type { PushOrder } from './push-order.js'

const MOST_PATHS = 20_000
const MOST_REASON = 4_000

/** Asks the rules of the settings at `push.starting`; returns their objection. */
export const ruleFinding = async (
  host: Pick<Host, 'call' | 'serves' | 'log'>,
  opened: OpenRepo,
  remote: AskedRemote,
  order: PushOrder,
  signal: AbortSignal,
): Promise<string | undefined> => {
  if (!(await host.serves('rules.standing'))) return undefined
  const moment = 'push.starting'
  const { rules } = await host.call('rules.standing', { moment })
  if (rules.length === 0) return undefined
  const { repo } = opened
  const paths = await pushedPaths(opened, remote, order)
  if (paths.length > MOST_PATHS && rules.some(({ asks }) => asks.includes('paths')))
    return `the push changes more than ${MOST_PATHS} files, too many for the rules to compare: push it in parts`
  const facts = { repos: [repo], paths: paths.slice(0, MOST_PATHS) }
  try {
    const asked = { moment, facts, cwd: pathOfRepo(repo) } as const
    const { go, reason = 'a rule of the settings stopped it' } = await host.call('rules.fire', asked, { signal })
    return go ? undefined : reason.slice(0, MOST_REASON)
  } catch (error) {
    // A check that could not be made never counts as passed.
    host.log.warn('asking the rules before a push failed', { repo, error: String(error) })
    return `the rules could not be asked: ${Refusal.from(error).message}`
  }
}

/** The files of the commits that the remote lacks, from the workspace root. */
const pushedPaths = async ({ git, repo }: OpenRepo, { name }: AskedRemote, { id }: PushOrder): Promise<string[]> => {
  const { text } = await git.read([
    ...['log', '-m', '-z', '--format=', '--name-only', '--no-renames', id, '--not', `--remotes=${name}`],
  ])
  const root = pathOfRepo(repo)
  return [...new Set(text.split('\0').filter(Boolean))].map(path => posix.join(root, path))
}
