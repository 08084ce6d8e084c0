import { posix } from 'node:path'
import { accessTo, covers, pathOfRepo, type Context, type Handlers, type Host } from '../../../sdk/index.js'
import { accessViewFor } from '../../../sdk/node/access/asked-reach.js'
import { accessToConversation, assertVisible } from '../../../sdk/node/access/conversation-reach.js'
import type { AccessView } from '../../../sdk/node/access/access-view.js'
import type { ConversationState, LandConflict } from '../../agent/contract.js'
import type { AgentChanges, Agents, SyncReport } from '../contract.js'

type ViewHost = Pick<Host, 'call' | 'serves' | 'place'>

/** Refuses a conversation that the caller may not see; with `works` also one in an area held for reading only. */
const checkOne = async (host: ViewHost, seen: AccessView, id: string, works: boolean): Promise<void> => {
  const { conversation } = await host.call('agent.conversation', { id })
  await assertVisible(seen, conversation, works)
}

/** The calls that only read a conversation. */
const READS = /^GET |^agents[.](?:sides|changed)$/

type Named = { readonly id?: string; readonly ids?: readonly string[] } | undefined
type Run = (input: never, context: Context, seen: AccessView) => unknown

/** Handlers that also get their caller's access view. */
export type ViewingHandlers<Api> = {
  [C in keyof Handlers<Api>]: (
    ...given: [...Parameters<Handlers<Api>[C]>, seen: AccessView]
  ) => ReturnType<Handlers<Api>[C]>
}

/** Wraps calls so that each refuses conversations in its input that the caller may not see. */
export const withAccessView = (host: ViewHost, handlers: ViewingHandlers<Agents>): Handlers<Agents> => {
  const guard = (call: string, run: Run) => async (input: Named, context: Context) => {
    const seen = await accessViewFor(host, context.caller)
    const { id, ids = [] } = input ?? {}
    if (seen.reach)
      for (const each of id === undefined ? ids : [id, ...ids]) await checkOne(host, seen, each, !READS.test(call))
    return run(input as never, context, seen)
  }
  // Each handler keeps its type, without the parameter for the access view.
  return Object.fromEntries(
    Object.entries(handlers).map(([call, run]) => [call, guard(call, run as Run)]),
  ) as unknown as Handlers<Agents>
}

/** The conversations that a caller may see; with `works`, also work on. */
export const within = async (
  seen: AccessView,
  states: readonly ConversationState[],
  works = false,
): Promise<ConversationState[]> => {
  if (!seen.reach) return [...states]
  const found = await Promise.all(states.map(({ conversation }) => accessToConversation(seen, conversation)))
  return states.filter((_, at) => (works ? found[at] === 'work' : found[at] !== undefined))
}

/** Whether a file of a repository is visible. */
export const seesFile = ({ reach }: AccessView, repo: string, path: string): boolean =>
  accessTo(reach, posix.join(pathOfRepo(repo), path)) !== undefined

const conflictsFor = (seen: AccessView, conflicts: readonly LandConflict[]): LandConflict[] =>
  conflicts.flatMap(conflict => {
    const paths = conflict.paths.filter(({ path }) => seesFile(seen, conflict.repo, path))
    return paths.length > 0 ? [{ ...conflict, paths, clean: 0 }] : []
  })

/** The visible changes of a conversation. */
export const changesFor = (seen: AccessView, { repos, conflicts }: AgentChanges): AgentChanges => {
  if (!seen.reach) return { repos, ...(conflicts && { conflicts }) }
  const inside = conflictsFor(seen, conflicts ?? [])
  return {
    repos: repos.flatMap(repo => {
      const changes = repo.changes
        .filter(({ path }) => seesFile(seen, repo.repo, path))
        .map(({ from, ...change }) => ({
          ...change,
          ...(from !== undefined && seesFile(seen, repo.repo, from) && { from }),
        }))
      return changes.length > 0
        ? [{ ...repo, changes, modules: repo.modules.filter(({ dir }) => seesFile(seen, repo.repo, dir)) }]
        : []
    }),
    ...(inside.length > 0 && { conflicts: inside }),
  }
}

/** The visible part of sync reports. */
export const reportsFor = (seen: AccessView, reports: readonly SyncReport[]): SyncReport[] => {
  if (!seen.reach) return [...reports]
  return reports
    .filter(({ repo }) => covers(seen.reach, repo) !== 'none')
    .map(({ paths, ...report }) => {
      const inside = (all: readonly string[]) => all.filter(path => seesFile(seen, report.repo, path))
      return {
        ...report,
        moved: inside(report.moved),
        overlap: inside(report.overlap),
        ...(paths && { paths: inside(paths) }),
      }
    })
}
