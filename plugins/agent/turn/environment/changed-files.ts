import type { KeyedMutex } from '../../../../sdk/node/concurrency/keyed-mutex.js'
import { pathOf } from '../../../../sdk/node/repositories/main-repository.js'
import type { Anchors } from '../../conversations/anchors.js'
import type { Conversations } from '../../conversations/conversations.js'
import type { Copies } from '../../copies/copies.js'
import type { ChangedFiles, TurnRulesDeps } from '../turn-rules.js'
import { changedPaths, turnWork, type TurnWork } from './own-changes.js'

interface ChangesDeps {
  readonly copies: Copies
  readonly conversations: Pick<Conversations, 'get'>
  readonly anchors: Anchors
  /** The turn locks. */
  readonly locks: KeyedMutex
}

/** What turns and conversations changed, for rules. */
export const changesForRules = ({ copies, conversations, anchors, locks }: ChangesDeps): TurnRulesDeps['changes'] => {
  const of = async (paths: readonly string[]): Promise<ChangedFiles> => {
    const repos = (await copies.repositories()).map(({ repo }) => repo)
    return { paths, repos: [...new Set(paths.flatMap(path => repoOf(path, repos) ?? []))] }
  }
  return {
    ofTurn: async turn => {
      const { id, branch, repos } = conversations.get(turn.conversationId)
      const shown = [...turn.record.changedFiles]
      if (!branch || repos.length === 0) return of(shown)
      const tips = await locks.with(id, () => copies.commitRest(id, repos), turn.signal)
      const made = await changedPaths(await turnWork({ anchors, copies }, turn, repos, tips))
      return of([...new Set([...shown, ...made])])
    },
    ofBranch: async conversationId => {
      const { id, repos } = conversations.get(conversationId)
      const work = (await copies.resolve(id, repos)).flatMap(({ repo, main: dir, base, tip: to }): TurnWork[] =>
        dir === undefined || to === undefined ? [] : [{ dir, path: pathOf(repo), from: base, to }],
      )
      return of(await changedPaths(work))
    },
  }
}

/** The repository that a file lies in: the innermost one. */
const repoOf = (path: string, repos: readonly string[]): string | undefined =>
  repos
    .filter(repo => pathOf(repo) === '' || path.startsWith(`${pathOf(repo)}/`))
    .sort((one, other) => pathOf(other).length - pathOf(one).length)[0]
