import { refuse } from '../../../sdk/index.js'
import { git } from '../../../sdk/node/programs/git.js'
import { below, pathOf } from '../../../sdk/node/repositories/main-repository.js'
import { SANDBOX } from '../../../sdk/node/repositories/sandbox-identity.js'
import type { CheckoutRepo } from '../../agent/contract.js'
import { gitFoldersOf, type Refs } from '../work/git-folders.js'
import type { Repository } from '../work/repository.js'
import type { ScratchRepo } from '../work/scratch-repo.js'
import { headObstacle, type HeadStep } from './git-steps.js'

/** The repositories of a conversation that others of it have pointers to: their submodules. */
export const submodulesAmong = async (refs: Refs, repos: readonly CheckoutRepo[]): Promise<Set<string>> => {
  const found = new Set<string>()
  for (const { repo } of repos) {
    const [parent] = repos
      .filter(each => each.repo !== repo && below(each.repo, repo) !== undefined)
      .sort((one, other) => pathOf(other.repo).length - pathOf(one.repo).length)
    const folders = parent && gitFoldersOf(parent, parent.main)
    const head = folders && refs.head(folders).commit
    if (!parent || !folders || head === undefined) continue
    const { text } = await git(folders.common, ['ls-tree', '-z', head, '--', below(parent.repo, repo)!], {
      env: { GIT_DIR: folders.common, GIT_LITERAL_PATHSPECS: '1', GIT_NO_REPLACE_OBJECTS: '1' },
      ok: [0, 128],
    })
    if (text.startsWith('160000 ')) found.add(repo)
  }
  return found
}

/**
 * The newest commit of a branch that its conversation made or checked out itself; undefined: HEAD has it, or there is
 * none. The sandbox's own commits hold what was left uncommitted, and land as uncommitted changes.
 */
export const moduleCommit = async (
  scratch: ScratchRepo,
  { head: { commit: head }, tip }: Pick<Repository, 'head' | 'tip'>,
): Promise<string | undefined> => {
  if (head === undefined) return undefined
  const { code, text } = await scratch.once(['log', '--first-parent', '--format=%H %ae', tip, `^${head}`], {
    ok: [0, 128],
  })
  if (code !== 0) return undefined
  const own = text.split('\n').find(line => line !== '' && !line.endsWith(` ${SANDBOX.email}`))
  return own?.split(' ')[0]
}

/** The move of HEAD of a submodule's checkout to a commit; refuses where that would lose something of the person's. */
export const moduleStep = async (scratch: ScratchRepo, here: Repository, to: string): Promise<HeadStep> => {
  const {
    checkout: { repo },
    main,
    head: { commit: from = '' },
  } = here
  if (!(await scratch.contains(to, from))) {
    refuse(
      'conflict',
      `the checkout of the submodule ${repo} is on ${from.slice(0, 12)}, on which the commit ${to.slice(0, 12)} of the `
        + 'conversation does not build: sync the conversation, then land again',
    )
  }
  const obstacle = await headObstacle(main, scratch.personWall, { from, to })
  if (obstacle !== undefined) {
    refuse(
      'conflict',
      `the submodule ${repo} cannot move to the commit ${to.slice(0, 12)} of the conversation, because its index has `
        + `other changes (${obstacle}): commit or unstage them there, then land again`,
    )
  }
  return { from, to }
}
