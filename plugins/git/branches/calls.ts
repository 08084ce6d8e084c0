import type { Handlers, Host } from '../../../sdk/index.js'
import type { Repositories } from '../repositories/repositories.js'
import { branchList } from './refs.js'
import type { BranchCalls } from './contract.js'
import { copiesOf, copyHolders, submodulesOf, worktreesOf } from './worktrees.js'

/** Serves branches, tags and worktrees. */
export const branchCalls = (
  host: Pick<Host, 'call' | 'serves' | 'place'>,
  repositories: Repositories,
): Handlers<Pick<BranchCalls, 'GET /git/{repo}/branches' | 'GET /git/{repo}/worktrees'>> => ({
  'GET /git/{repo}/branches': async ({ repo, merged }, { caller }) =>
    branchList(await repositories.open(repo, caller), await copyHolders(host, repo), merged),
  'GET /git/{repo}/worktrees': async ({ repo }, { caller }) => {
    const opened = await repositories.open(repo, caller)
    const [worktrees, copies, submodules] = await Promise.all([
      worktreesOf(opened, host.place.workspace),
      opened.only ? [] : copiesOf(host, opened),
      submodulesOf(opened, repositories.wall),
    ])
    return { worktrees: [...worktrees, ...copies], submodules }
  },
})
