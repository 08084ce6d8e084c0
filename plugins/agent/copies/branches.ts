import { mkdir, readdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { readJson, readPlain, sweepTemporary, writeAtomic } from '../../../sdk/node/files/files.js'
import { usualBranch } from './branch-name.js'
import { ownTip, refsOf } from './gitdir.js'
import { importObjects, logOf, MalformedBranch, type Import } from './import.js'
import { importLargeFiles } from './lfs-objects.js'
import { branchTip, moveBranch } from './refs.js'
import type { MainRepository } from '../../../sdk/node/repositories/main-repository.js'
import type { TreeEntry } from './repositories.js'
import type { Tree } from './tree.js'

/** The commit that the daemon set a branch to: `tip`, or `was` while `tip` is still being written. */
interface Known {
  readonly tip: string
  readonly was?: string
  /** The name of the branch, if it is not the usual one. */
  readonly branch?: string
}

const MOST_LOG = 4 * 1024 * 1024
const MOST_NAMED = 1000
const short = (commit: string): string => commit.slice(0, 12)

/** Imports the branches of private copies into their repositories, and records the commit of each. */
export class Branches {
  readonly #folder: string

  /** @param folder A folder of its own. */
  constructor(folder: string) {
    this.#folder = folder
  }

  /** The recorded commits of a conversation's branches, by repository. */
  async left(id: string): Promise<ReadonlyMap<string, string>> {
    return new Map(Object.entries(await this.#read(id)).map(([repo, { tip }]) => [repo, tip]))
  }

  /** The name of a conversation's branches: that with which they began, else the usual one. */
  async name(id: string): Promise<string> {
    return Object.values(await this.#read(id)).find(({ branch }) => branch !== undefined)?.branch ?? usualBranch(id)
  }

  /** The commits at which the branch of a repository is the one that the daemon left; none: it made no such branch. */
  async own(id: string, repo: string): Promise<string[]> {
    const { tip, was } = (await this.#read(id))[repo] ?? {}
    return [tip, was].filter(commit => commit !== undefined)
  }

  /** Records the commits at which branches begin, and their name. */
  async begin(
    id: string,
    tips: readonly { readonly repo: string; readonly head: string }[],
    branch: string,
  ): Promise<void> {
    const tipsNow = Object.fromEntries(tips.map(({ repo, head }): [string, Known] => [repo, { tip: head }]))
    // One name for all, also for repositories that are away.
    const all = Object.entries({ ...(await this.#read(id)), ...tipsNow }).map(([repo, { branch: _, ...known }]) => [
      repo,
      branch === usualBranch(id) ? known : { ...known, branch },
    ])
    await this.#write(id, Object.fromEntries(all))
  }

  /** The ids of conversations with records. */
  async ids(): Promise<string[]> {
    const names = await readdir(this.#folder).catch(() => [] as string[])
    return names.filter(name => name.endsWith('.json')).map(name => name.replace(/\.json$/, ''))
  }

  /** Deletes the record of a removed conversation. */
  forget(id: string): Promise<void> {
    return rm(this.#note(id), { force: true })
  }

  /** Removes half-written records of a killed daemon. */
  sweep(): Promise<void> {
    return sweepTemporary(this.#folder)
  }

  /** Refuses a branch that something other than its conversation has moved in the repository. */
  async check(id: string, repo: string, common: string): Promise<void> {
    const branch = await this.name(id)
    const here = await branchTip(common, branch)
    const known = (await this.#read(id))[repo]
    if (here !== undefined && isForeign(here, known)) refuse('conflict', movedAway(repo, branch, known!.tip, here))
  }

  /**
   * Imports a copy's branch: its objects, then the branch with its reflog. Does nothing if the branch did not move.
   *
   * Returns why it was not imported, as a sentence; the repository is then unchanged.
   */
  async take(
    id: string,
    { repo, common, gitdir }: TreeEntry,
    tree: Tree,
    main: MainRepository | undefined,
  ): Promise<string | undefined> {
    const { branch } = tree
    const tip = ownTip(gitdir, branch)
    if (tip === undefined) {
      return (
        `the private copy of ${repo} has lost its branch ${branch}, so its work cannot be imported: `
        + 'have the agent create it again at its newest commit'
      )
    }
    const here = await branchTip(common, branch)
    if (here === tip) return undefined
    const known = (await this.#read(id))[repo]
    if (here !== undefined && isForeign(here, known)) return movedAway(repo, branch, known!.tip, here)
    if (main && readPlain(join(main.gitdir, 'HEAD'))?.trim() === `ref: refs/heads/${branch}`) {
      return (
        `the main checkout of ${repo} is on ${branch}, so the branch cannot be updated: switch it to `
        + 'another branch, then try again'
      )
    }
    try {
      const ids = await this.#objects(
        { tree, common, gitdir, tip },
        [here, main?.head].filter(commit => commit !== undefined),
      )
      await importLargeFiles(gitdir, common, ids)
      const log = logOf(readPlain(join(gitdir, 'logs/refs/heads', branch), MOST_LOG) ?? '', here, tip, ids)
      await this.#write(id, { ...(await this.#read(id)), [repo]: { ...named(known), tip, ...(here && { was: here }) } })
      failpoint('agent.import.noted')
      const moved = await moveBranch(common, branch, { from: here, to: tip, log })
      failpoint('agent.import.moved')
      if (!moved) return movedAway(repo, branch, here ?? tip, (await branchTip(common, branch)) ?? 'none')
      return undefined
    } catch (error) {
      if (!(error instanceof MalformedBranch)) throw error
      return (
        `what ${branch} of ${repo} holds does not pass git's checks and stays out of the repository `
        + `(${error.message}): have the agent remove that commit`
      )
    }
  }

  /** Imports the objects that no ref of the repository reaches; refs that cannot be resolved there are skipped. */
  async #objects(what: Omit<Import, 'has'>, sure: readonly string[]): Promise<string[]> {
    const named = new Set([...sure, ...(await refsOf(what.common)).refs.values()])
    const has = [...named].slice(0, MOST_NAMED)
    return importObjects({ ...what, has }).catch(error => {
      if (!(error instanceof MalformedBranch) || has.every(commit => sure.includes(commit))) throw error
      return importObjects({ ...what, has: sure })
    })
  }

  async #read(id: string): Promise<{ readonly [repo: string]: Known }> {
    return (await readJson<{ [repo: string]: Known }>(this.#note(id))) ?? {}
  }

  async #write(id: string, known: { readonly [repo: string]: Known }): Promise<void> {
    await mkdir(dirname(this.#note(id)), { recursive: true, mode: 0o700 })
    await writeAtomic(this.#note(id), JSON.stringify(known), { flush: true })
  }

  #note(id: string): string {
    return join(this.#folder, `${id}.json`)
  }
}

const named = (known: Known | undefined): Pick<Known, 'branch'> => (known?.branch ? { branch: known.branch } : {})

const isForeign = (here: string, known: Known | undefined): boolean =>
  known !== undefined && here !== known.tip && here !== known.was

const movedAway = (repo: string, branch: string, expected: string, found: string): string =>
  `${branch} of ${repo} was moved in the repository by something other than its conversation `
  + `(expected ${short(expected)}, found ${short(found)}): `
  + `put it back with \`git update-ref refs/heads/${branch} ${expected}\`, then try again`
