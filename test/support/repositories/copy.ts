import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createGitdir } from '../../../plugins/agent/copies/gitdir.js'

/**
 * Makes a private copy of a repository with its own git dir, like the daemon does; returns the facts that its wall
 * needs.
 */
export const copyOf = async (
  checkout: string,
  copy: string,
  own: string,
  { branch = 'agent/c-1', path = '', common = join(checkout, '.git') } = {},
): Promise<{ path: string; common: string; own: string }> => {
  const git = (cwd: string, ...args: string[]) =>
    execFileSync('git', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()
  const commit = git(checkout, 'rev-parse', 'HEAD')
  git(checkout, 'update-ref', `refs/heads/${branch}`, commit)
  mkdirSync(copy, { recursive: true })
  await createGitdir(own, common, { branch, commit })
  writeFileSync(join(copy, '.git'), `gitdir: ${own}\n`)
  git(copy, 'reset', '-q', '--hard')
  return { path, common, own }
}
