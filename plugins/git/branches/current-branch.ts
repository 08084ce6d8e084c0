import { join } from 'node:path'
import { readPlain } from '../../../sdk/node/files/files.js'
import type { RepoGit } from '../repositories/repo-git.js'

const BRANCH = /^ref: refs\/heads\/([^\0\n]+)\n$/
const COMMIT = /^[0-9a-f]{40,64}\n?$/
/** The content of HEAD if refs are stored in a table (gitformat-reftable(5)). */
const IN_TABLE = '.invalid'

/**
 * The branch that is checked out; undefined: HEAD is detached, or is not a branch. Reads the file, and runs git
 * only if that is not enough.
 */
export const currentBranch = async (git: RepoGit): Promise<string | undefined> => {
  const head = readPlain(join(git.place.gitdir, 'HEAD')) ?? ''
  const branch = BRANCH.exec(head)?.[1]
  if (branch !== undefined && branch !== IN_TABLE) return branch
  if (COMMIT.test(head)) return undefined
  const { text } = await git.read(['symbolic-ref', '--quiet', 'HEAD'], { ok: [0, 1] })
  return /^refs\/heads\/(.+)\n$/.exec(text)?.[1]
}
