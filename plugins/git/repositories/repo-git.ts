import { contains } from '../../../sdk/node/files/paths.js'
import { git, GitFailure, type GitAnswer, type GitOptions } from '../../../sdk/node/programs/git.js'
import {
  conversionOf,
  failedFilter,
  isMissingProgram,
  settingArgs,
  withoutFilter,
} from '../../../sdk/node/repositories/conversion.js'
import { note } from '../../../sdk/node/wall/sources.js'
import type { WallBase } from '../../../sdk/node/transport/remote-git.js'
import type { WallSpec } from '../../../sdk/node/wall/wall.js'
import { refuse } from '../../../sdk/index.js'
import type { RepoPlace } from './repo-place.js'

/** The wall of programs of a repository: git itself, its hooks and its filters. */
export type RepoWall = WallBase & Pick<WallSpec, 'network'>

type How = Omit<GitOptions, 'wall'>

/** How git is to write. */
export type WriteHow = How & {
  /** Whether no file that git stores or writes has a filter: git goes on without one whose program is missing. */
  readonly spares?: (filter: string) => boolean | Promise<boolean>
}

/** For commands that store and write no file. */
export const SPARES_ALL: Pick<WriteHow, 'spares'> = { spares: () => true }

/** Where git-lfs writes what it compares (git-lfs-config(5)): a folder of the wall, since git's cannot be written. */
const COMPARED = ['-c', 'lfs.storage=/tmp/lfs']

const READ_MS = 30_000
const WRITE_MS = 120_000

/** Git's words for an object that a partial clone left out; the daemon's own git fetches none. */
const LEFT_OUT = /promisor remote/

/** Refuses to read what a partial clone left out, or a damaged repository lost. */
export const refuseLeftOut = (repo: string, cause?: unknown): never =>
  refuse(
    'unprocessable',
    `${repo} lacks a content that is asked for, as a partial clone does: \`git fetch --refetch --no-filter\` in a `
      + 'terminal fetches all of them',
    { cause },
  )

/** Whether git ended because an object was left out. */
export const isLeftOut = (error: unknown): boolean => error instanceof Error && LEFT_OUT.test(error.message)

/** Runs git on one checkout, with the git dir and working tree that the daemon determined. */
export class RepoGit {
  readonly place: RepoPlace
  readonly #base: RepoWall

  constructor(place: RepoPlace, base: RepoWall) {
    this.place = place
    this.#base = base
  }

  /** Reads objects, refs or settings: starts no program of the repository. */
  read(args: readonly string[], how: How = {}): Promise<GitAnswer> {
    return this.#run(args, { timeoutMs: READ_MS, ...how })
  }

  /** Reads the index or the working tree, behind a wall in which nothing can be written. */
  look(args: readonly string[], how: How = {}): Promise<GitAnswer> {
    const options: GitOptions = { timeoutMs: READ_MS, priority: 'own', ...how, wall: this.#sealed() }
    return this.#withoutMissing([...COMPARED, ...args], options, () => true)
  }

  /** Writes refs, the index or the working tree, behind a wall. */
  write(args: readonly string[], { spares, ...how }: WriteHow = {}): Promise<GitAnswer> {
    const options: GitOptions = { timeoutMs: WRITE_MS, ...how, wall: this.wall }
    return spares ? this.#withoutMissing(args, options, spares) : this.#run(args, options)
  }

  /** The variables that fix git's folders, regardless of the repository's settings. */
  get env(): { readonly [name: string]: string } {
    const { dir, gitdir, common } = this.place
    return {
      GIT_DIR: gitdir,
      GIT_WORK_TREE: dir,
      ...(common !== gitdir && { GIT_COMMON_DIR: common }),
      GIT_LITERAL_PATHSPECS: '1',
    }
  }

  /** The wall for a program of the repository. A git dir in the data folder is visible at its own path. */
  get wall(): Omit<WallSpec, 'cwd' | 'env'> {
    const { common } = this.place
    return { ...this.#base, ...(contains(this.#base.data, common) && { exposed: [common] }) }
  }

  #sealed(): Omit<WallSpec, 'cwd' | 'env'> {
    return { ...this.wall, sealed: true, readOnly: [this.place.common] }
  }

  /** What the person's own git has set about the form of files; the repository's settings are read anyway. */
  async #forms(wall: Omit<WallSpec, 'cwd' | 'env'>): Promise<{ settings: string[]; wall: typeof wall }> {
    const { forms, filters, attributes } = await conversionOf(this.place)
    const settings = settingArgs([...forms, ...filters])
    if (attributes === '') return { settings, wall }
    const from = await note(wall.data, attributes)
    const shown = [...(wall.shown ?? []), { from, to: from }]
    return { settings: [...settings, '-c', `core.attributesFile=${from}`], wall: { ...wall, shown } }
  }

  /** Runs git without the filters that it ends for because their programs are missing. */
  async #withoutMissing(
    args: readonly string[],
    options: GitOptions,
    spares: NonNullable<WriteHow['spares']>,
  ): Promise<GitAnswer> {
    const off = new Map<string, readonly string[]>()
    for (;;) {
      const failed = await this.#run([...[...off.values()].flat(), ...args], options).catch((error: unknown) => {
        if (error instanceof GitFailure) return error
        throw error
      })
      const failure =
        failed instanceof GitFailure
          ? failed
          : failed.code === 0
            ? undefined
            : new GitFailure(args[0] ?? '', failed.code, failed.stderr)
      const filter = failure && isMissingProgram(failure) ? failedFilter(failure)?.filter : undefined
      if (filter !== undefined && !off.has(filter) && (await spares(filter)))
        off.set(filter, settingArgs(withoutFilter(filter)))
      else if (failed instanceof GitFailure) throw failed
      else return failed
    }
  }

  async #run(args: readonly string[], options: GitOptions): Promise<GitAnswer> {
    try {
      const how = { ...options, env: { ...this.env, ...options.env } }
      if (!how.wall) return await git(this.place.dir, args, how)
      const { settings, wall } = await this.#forms(how.wall)
      return await git(this.place.dir, [...settings, ...args], { ...how, wall })
    } catch (error) {
      if (error instanceof GitFailure && / did not end within /.test(error.message)) refuse('failed', error.message)
      if (isLeftOut(error)) refuseLeftOut(this.place.repo, error)
      throw error
    }
  }
}

/** The line of git's output that describes the error. */
export const verdictOf = (stderr: string): string => {
  const lines = stderr
    .split('\n')
    .map(line => line.replace(/[\x00-\x1f\x7f]/g, ' ').trim())
    .filter(line => line !== '' && !line.startsWith('hint:'))
  const found = lines.find(line => /^(?:fatal|error):/.test(line)) ?? lines[0] ?? 'git said nothing'
  return found.replace(/^(?:fatal|error): /, '').slice(0, 500)
}
