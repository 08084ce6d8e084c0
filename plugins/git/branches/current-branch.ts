import { join } from 'node:path'
import { readPlain } from '../../../sdk/node/files/files.js'
import type { RepoGit } from '../repositories/repo-git.js'

const BRANCH = /^ref: refs\/heads\/([^\0\n]+)\n$/
const COMMIT = /^[0-9a-f]{40,64}\n?$/
/** What HEAD names where refs are kept in a table (gitformat-reftable(5)). */
const IN_TABLE = '.invalid'

/**
 * The branch that is checked out; undefined: HEAD is detached, or names something else. Reads the file, and asks git
 * only where that does not say it.
 */
export const currentBranch = async (git: RepoGit): Promise<string | undefined> => {
  const head = readPlain(join(git.place.gitdir, 'HEAD')) ?? ''
  const branch = BRANCH.exec(head)?.[1]
  if (branch !== undefined && branch !== IN_TABLE) return branch
  if (COMMIT.test(head)) return undefined
  const { text } = await git.read(['symbolic-ref', '--quiet', 'HEAD'], { ok: [0, 1] })
  return /^refs\/heads\/(.+)\n$/.exec(text)?.[1]
}
