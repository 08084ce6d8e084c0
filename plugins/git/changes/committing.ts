import { copyFile, mkdir, rename, rm } from 'node:fs/promises'
import { isAbsolute, join, resolve } from 'node:path'
import { randomUUID } from 'node:crypto'
import { anyExit } from '../branches/git-words.js'
import { refuse } from '../../../sdk/index.js'
import { contains } from '../../../sdk/node/files/paths.js'
import { gitSettings } from '../remotes/settings.js'
import { SPARES_ALL, verdictOf, type RepoGit } from '../repositories/repo-git.js'
import { unmergedPaths, type Writing } from '../writes/write.js'
import { sparing, sparsely, stagePaths } from './index-writes.js'
import { operationOf } from './operation.js'

/** A commit to make. */
export interface CommitOrder {
  readonly message: string
  readonly all?: boolean | undefined
  readonly paths?: readonly string[] | undefined
  /** Commit the paths alone: what else is staged stays staged. */
  readonly only?: boolean | undefined
  readonly amend?: boolean | undefined
}

/** Counts the commits in progress, by repository. */
export class Committing {
  readonly #now = new Map<string, number>()

  get repos(): string[] {
    return [...this.#now.keys()].sort()
  }

  async with<T>(repo: string, work: () => Promise<T>): Promise<T> {
    this.#now.set(repo, (this.#now.get(repo) ?? 0) + 1)
    try {
      return await work()
    } finally {
      const left = this.#now.get(repo)! - 1
      if (left === 0) this.#now.delete(repo)
      else this.#now.set(repo, left)
    }
  }
}

/** The folder of the repository's hooks; ignores a setting that leads outside the workspace. */
export const hooksOf = async (git: RepoGit, workspace: string): Promise<string> => {
  const { dir, common } = git.place
  const named = (await gitSettings(git, '^core\\.hookspath$')).at(-1)?.[1]
  const folder = named === undefined ? undefined : isAbsolute(named) ? named : resolve(dir, named)
  return folder !== undefined && contains(workspace, folder) ? folder : join(common, 'hooks')
}

/** Runs a step; restores the index if it fails, unless the disk has no room for it. */
export const keepingIndex = async <T>(write: Writing, folder: string, step: () => Promise<T>): Promise<T> => {
  const { gitdir } = write.opened.git.place
  const kept = join(folder, `index-${randomUUID()}`)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const before = await copyFile(join(gitdir, 'index'), kept).then(
    () => true,
    () => false,
  )
  try {
    return await step()
  } catch (error) {
    const back = join(gitdir, `index-${randomUUID()}`)
    const restored = before
      ? copyFile(kept, back).then(() => rename(back, join(gitdir, 'index')))
      : rm(join(gitdir, 'index'), { force: true })
    await restored.catch(() => rm(back, { force: true }))
    throw error
  } finally {
    await rm(kept, { force: true })
  }
}

/** So many bytes of paths fit into the arguments of a program with room to spare. */
const MOST_NAMED = 100_000

/** The arguments that name paths as they are; hooks may use their own patterns. */
const literally = (paths: readonly string[]): string[] => {
  if (paths.reduce((sum, path) => sum + Buffer.byteLength(path) + 16, 0) > MOST_NAMED)
    refuse('too-large', `paths: expected at most ${MOST_NAMED} bytes of names for one commit, found more: name fewer`)
  return paths.map(path => `:(top,literal)${path}`)
}

/** Commits the index, after staging the requested paths; undefined: nothing to commit. */
export const commitIndex = async (
  write: Writing,
  { message, all = false, paths, only = false, amend = false }: CommitOrder,
  place: { readonly workspace: string; readonly folder: string },
): Promise<string | undefined> => {
  const { repo, git } = write.opened
  const operation = operationOf(git.place.gitdir)
  if (operation === 'rebase') refuse('conflict', `${repo} is in the middle of a rebase: continue it or abort it`)
  if (amend && write.head === undefined) refuse('unprocessable', `${repo} has no commit to amend`)
  return keepingIndex(write, join(place.folder, 'kept'), async () => {
    if (all || paths) await stagePaths(write, paths)
    const unmerged = await unmergedPaths(write.opened)
    if (unmerged.length > 0)
      refuse('conflict', `${unmerged[0]} of ${repo} is unmerged: resolve and stage it first`, {
        fields: { conflicts: unmerged.slice(0, 200) },
      })
    const alone = only && paths ? literally(paths) : []
    const seen = ['diff', '--cached', '--quiet', '--ignore-submodules=dirty', ...(alone.length ? ['--', ...alone] : [])]
    const staged = (await git.look(seen, { ok: [0, 1], env: { GIT_LITERAL_PATHSPECS: '0' } })).code
    if (staged === 0 && !amend && operation === undefined) return undefined
    const hooks = ['-c', `core.hooksPath=${await hooksOf(git, place.workspace)}`]
    const args = [...hooks, 'commit', '-q', '-F', '-', ...(amend ? ['--amend'] : [])]
    if (alone.length > 0) args.push('--only', '--', ...alone)
    const { code, stderr, text } = await write.run(args, {
      input: message,
      ...SPARES_ALL,
      // Hooks may use their own patterns.
      env: { GIT_LITERAL_PATHSPECS: '0' },
      ...anyExit,
    })
    const said = stderr.trim() === '' ? text : stderr
    if (code !== 0)
      refuse('conflict', said.trim() === '' ? `a hook of ${repo} refused the commit and said nothing` : verdictOf(said))
    return (await git.read(['rev-parse', 'HEAD'])).text.trim()
  })
}

/** Commits one path as on disk, and keeps other staged changes; returns the reason if it cannot. */
export const commitPathAlone = (
  write: Writing,
  { path, message }: { readonly path: string; readonly message: string },
  place: { readonly workspace: string; readonly folder: string },
): Promise<string | undefined> => {
  const { git } = write.opened
  return keepingIndex(write, join(place.folder, 'kept'), async () => {
    const hooks = ['-c', `core.hooksPath=${await hooksOf(git, place.workspace)}`]
    const spares = sparing(git, [Buffer.from(path).toString('latin1')])
    for (const [args, how] of [
      [['add', ...(await sparsely(git)), '--', path], {}],
      [[...hooks, 'commit', '-q', '--only', '-F', '-', '--', path], { input: message }],
    ] as const) {
      const { code, stderr, text } = await write.run(args, { ...how, ...anyExit, spares })
      if (code !== 0) throw new NotCommitted(verdictOf(stderr.trim() === '' ? text : stderr))
    }
    return undefined
  }).catch(error => (error instanceof NotCommitted ? error.message : Promise.reject(error)))
}

class NotCommitted extends Error {}
