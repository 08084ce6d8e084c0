import { refuse } from '../../../sdk/index.js'
import { git } from '../../../sdk/node/programs/git.js'
import type { BaseCommit, CopyStart } from '../contract.js'

const COMMIT = /^[0-9a-f]{4,64}$/i

/** Resolves the commits that a new private copy is pinned to; refuses unknown ones. */
export const pinsOf = async (
  named: readonly BaseCommit[],
  repositories: readonly { repo: string; dir: string }[],
): Promise<CopyStart[]> => {
  const pins: CopyStart[] = []
  for (const { repo, base } of named) {
    const dir =
      repositories.find(each => each.repo === repo)?.dir
      ?? refuse(
        'unprocessable',
        `worktreeBase: there is no repository ${JSON.stringify(repo.slice(0, 200))}: `
          + `expected ${repositories.map(each => each.repo).join(', ')}`,
      )
    if (pins.some(pin => pin.repo === repo))
      refuse('unprocessable', `worktreeBase: expected one commit for ${repo}, found several`)
    const commit =
      (await commitIn(dir, base))
      ?? refuse(
        'unprocessable',
        `worktreeBase: expected the id of a commit of ${repo}, found ${JSON.stringify(base.slice(0, 80))}`,
      )
    pins.push({ repo, tip: commit, base: commit, pinned: true })
  }
  return pins
}

/** The full id of a commit. Needs no wall: rev-parse starts no program of the repository. */
export const commitIn = async (dir: string, id: string): Promise<string | undefined> => {
  if (!COMMIT.test(id)) return undefined
  const { code, text } = await git(dir, ['rev-parse', '--verify', '-q', `${id}^{commit}`], { ok: [0, 1, 128] })
  const commit = text.trim()
  // A branch may be named like a commit: a name moves, and a pin must not.
  return code === 0 && commit.startsWith(id.toLowerCase()) ? commit : undefined
}
