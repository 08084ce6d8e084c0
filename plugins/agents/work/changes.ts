import type { ChangedSides } from '../../../sdk/index.js'
import { shownName } from '../../../sdk/node/byte-names.js'
import { presentSides } from '../../../sdk/node/files/side-files.js'
import { LARGEST_FILE } from '../../../sdk/node/files/large-files.js'
import { type ScratchRepo } from './scratch-repo.js'
import type { AgentChange, DiffTotals, RepoChanges } from '../contract.js'
import { treeOfCopy, type CopyTree } from './copy-tree.js'
import { planLanding, type Plan } from '../landing/plan.js'
import { modulesOf } from '../landing/modules.js'
import { moduleCommit } from '../landing/module-commit.js'
import { branchOf, type Repository } from './repository.js'
import { shownTip } from './expected-tips.js'
import { forkPoint, outstandingSpan } from './span.js'
import type { LandConflict } from '../../agent/contract.js'
import { changesBetween, type TreeChange, type TreeFile } from './tree-diff.js'

/** The changes of a conversation in a repository, for callers; `conflict`: those that would not land now. */
export interface ShownChanges {
  readonly changes: RepoChanges
  readonly conflict?: LandConflict
}

/** The commit and the tree that enclose a conversation's work in a repository, uncommitted work included. */
export const spanOf = async (
  scratch: ScratchRepo,
  repository: Repository,
): Promise<{ from: string; to: string; committed: string; unread: CopyTree['unread'] }> => {
  const {
    checkout: { copy },
    tip,
  } = repository
  const from = await forkPoint(scratch, branchOf(repository))
  const { tree, committed, unread } =
    copy === undefined
      ? { tree: tip, committed: tip, unread: new Map<string, number>() }
      : await treeOfCopy(scratch, repository, copy)
  return { from, to: tree, committed, unread }
}

const shown = (
  { path, from, status, additions, deletions }: TreeChange,
  blocked: ReadonlySet<string>,
  landed: boolean,
  size = 0,
): AgentChange => ({
  path: shownName(path),
  status: blocked.has(path) ? 'conflicted' : status,
  ...(from !== undefined && { from: shownName(from) }),
  ...(additions !== undefined && { additions }),
  ...(deletions !== undefined && { deletions }),
  landed,
  ...(size > LARGEST_FILE && { tooLarge: size }),
})

/** The changes of a conversation in one repository since its branch left main; marks those that main already has. */
export const changesOf = async (
  scratch: ScratchRepo,
  repository: Repository,
  workspace: string,
  branch: string,
  refused: boolean,
  isSubmodule = false,
): Promise<ShownChanges> => {
  const {
    checkout: { repo },
    main,
    head,
  } = repository
  const { from, to, committed, unread } = await spanOf(scratch, repository)
  const changes = await changesBetween(scratch, repo, from, to)
  const span = await outstandingSpan(scratch, branchOf(repository))
  const plan = await planLanding(scratch, {
    repo,
    main,
    workspace,
    from: span.from,
    to,
    cumulative: false,
    ...(head.commit !== undefined && { head: head.commit }),
  })
  const blocked = new Set(refused ? plan.stuck.map(({ change: { path } }) => path) : [])
  const commit = isSubmodule ? await moduleCommit(scratch, repository) : undefined
  const owed = new Set(plan.changes.flatMap(({ path }) => (plan.there.has(path) ? [] : [path])))
  return {
    changes: {
      repo,
      branch,
      tip: await shownTip(scratch, repository.tip, committed),
      ...(commit !== undefined && { commit }),
      changes: changes.map(change => shown(change, blocked, !owed.has(change.path), unread.get(change.path))),
      modules: await modulesOf(scratch, repo, to, changes),
    },
    ...(refused && plan.blocked.length > 0 && { conflict: conflictOf(repo, plan, head.branch) }),
  }
}

/** The conflicts of a plan, for callers. */
export const conflictOf = (repo: string, plan: Plan, mainBranch: string | undefined): LandConflict => ({
  repo,
  paths: [...plan.blocked],
  clean: plan.clean,
  ...(mainBranch !== undefined && { mainBranch }),
})

/** Both sides of what a conversation changed in one repository. */
export const changedSidesOf = async (scratch: ScratchRepo, repository: Repository): Promise<ChangedSides[]> => {
  const { from, to } = await spanOf(scratch, repository)
  const blobOf = (file: TreeFile | undefined) => (file ? { blob: file.id } : undefined)
  return (await changesBetween(scratch, repository.checkout.repo, from, to)).map(({ before, after, ...change }) => ({
    path: shownName(change.path),
    ...(change.from !== undefined && { from: shownName(change.from) }),
    binary: change.binary,
    ...presentSides(blobOf(before), blobOf(after)),
  }))
}

/** The sum of some changes. */
export const totalsOf = (changes: readonly TreeChange[]): DiffTotals => ({
  files: changes.length,
  insertions: changes.reduce((sum, { additions = 0 }) => sum + additions, 0),
  deletions: changes.reduce((sum, { deletions = 0 }) => sum + deletions, 0),
})
