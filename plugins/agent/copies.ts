import { randomBytes } from 'node:crypto'
import { lstat, mkdir, readdir, realpath, rename, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { refuse, type Log } from '../../sdk/index.js'
import { readJson, writeAtomic } from '../../sdk/node/files.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import { git } from '../../sdk/node/git.js'
import { Locks } from '../../sdk/node/lock.js'
import { listEnv, ownProgram, run } from '../../sdk/node/run.js'
import { wallKind, type WallSpec } from '../../sdk/node/wall.js'
import type { CheckoutRepo, CheckoutSync, CopyRepo, CopyStart } from './contract.js'
import {
  addTree, attachTree, below, clearPlaces, dependenciesOf, entriesBelow, exists, findRepositories, forgetTree, parkTree,
  pathOf, patternOf, repositoryAt, unparkBranch, whole, workBegins, type Repository, type TreeEntry,
} from './copies-repos.js'
import type { Checkpoint, Synced, Tip } from './copies-states.js'
import { abortRebase, commitTree, dropLocks, fillTree, rebaseTree, resetTree, type Tree } from './copies-tree.js'

/** Where private copies are kept. */
export interface CopiesOptions {
  readonly workspace: string
  /** The plugin's own folder. */
  readonly folder: string
  readonly data: string
  /** Folders elsewhere that nothing behind a wall may see. */
  readonly hidden?: readonly string[]
  readonly log?: Pick<Log, 'warn'>
}

/** A finished copy, as written down beside it: without this note a copy is half-made. */
interface Made {
  repos: (TreeEntry & { head: string })[]
  /** Dependency folders shown inside, as paths from the workspace root. */
  shown: string[]
}

type TurnWall = Omit<WallSpec, 'cwd' | 'env'>

const ID = /^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$/
/** Not an id a conversation can have. */
const SPARE = '.spare'
const MESSAGE = 'Keep uncommitted work'

/** The private copies of conversations. Callers hold the conversation's turn lock. */
export class Copies {
  readonly #options: CopiesOptions
  readonly #locks = new Locks()
  readonly #deletions = new Set<Promise<void>>()

  constructor(options: CopiesOptions) {
    this.#options = options
  }

  /** The repositories of the workspace that have a commit. */
  async repositories(): Promise<{ repo: string; dir: string }[]> {
    return (await findRepositories(this.#options)).map(({ repo, dir }) => ({ repo, dir }))
  }

  /** Where a conversation's copy is, made or not. */
  dir(id: string): string {
    if (!ID.test(id)) refuse('invalid', `expected a conversation id, found ${JSON.stringify(id.slice(0, 80))}`)
    return this.#place(id)
  }

  /** Makes the copy, or repairs it, and answers its repositories; one that is whole is left as it is. */
  async ensure(id: string, known: readonly CopyRepo[], starts: readonly CopyStart[] = []): Promise<CopyRepo[]> {
    const dir = this.dir(id)
    return this.#locks.with(id, async () => {
      const made = await this.#made(id)
      if (made && known.length > 0 && (await whole(dir, made.repos))) {
        await this.#settle(id, made)
        return known.map(repo => ({ ...repo }))
      }
      return this.#make(id, dir, known, starts)
    })
  }

  /** Commits the rest and moves the branch onto the main line; where that does not apply, all stays as it was. */
  async sync(id: string, repos: readonly CopyRepo[]): Promise<Synced> {
    return this.#locks.with(id, async () => {
      const made = await this.#usable(id)
      const reports: CheckoutSync[] = []
      const now: CopyRepo[] = []
      for (const repo of repos) {
        const main = await repositoryAt(this.#options, repo.repo)
        const tree = this.#tree(id, made, repo.repo)
        const { attached, tip } = await commitTree(tree, MESSAGE)
        const behind = main !== undefined && main.head !== repo.base && !repo.pinned
        if (!behind) {
          now.push({ ...repo })
          continue
        }
        const stopped = attached ? await this.#rebase(id, tree, main, repo, tip) : []
        const blocked = stopped !== undefined
        // Counting reads commits only: nothing of the repository can run.
        const commits = blocked ? 0 : Number((await git(main.dir, ['rev-list', '--count', `${repo.base}..${main.head}`])).text)
        reports.push({ repo: repo.repo, onto: main.head, from: repo.base, commits, blocked, paths: stopped ?? [] })
        now.push(blocked ? { ...repo } : { ...repo, base: main.head })
      }
      const commits = reports.reduce((sum, report) => sum + report.commits, 0)
      return { repos: now, commits, blocked: reports.filter(({ blocked }) => blocked).map(({ repo }) => repo), reports }
    })
  }

  /** Commits what the copy holds uncommitted and answers the tips. */
  async commitRest(id: string, repos: readonly CopyRepo[], message: string = MESSAGE): Promise<Tip[]> {
    return this.#locks.with(id, async () => {
      const made = await this.#usable(id)
      const tips: Tip[] = []
      for (const { repo } of repos) {
        const { tip } = await commitTree(this.#tree(id, made, repo), message)
        tips.push({ repo, tip })
      }
      return tips
    })
  }

  /** Commits the rest and answers the state that can be gone back to. */
  async checkpoint(id: string, repos: readonly CopyRepo[]): Promise<Checkpoint> {
    const commits = await this.commitRest(id, repos)
    const root = commits.find(({ repo }) => repo === 'root') ?? commits[0]
    return { id: `branch:${root?.tip ?? ''}`, commits }
  }

  /** Puts the trees back to these commits, whatever stands there now; ignored files stay. */
  async restore(id: string, tips: readonly Tip[]): Promise<void> {
    await this.#locks.with(id, async () => {
      const made = await this.#usable(id)
      for (const { repo, tip } of tips) await resetTree(this.#tree(id, made, repo), tip)
    })
  }

  /** The repositories with their folders on this machine. */
  async resolve(id: string, repos: readonly CopyRepo[]): Promise<CheckoutRepo[]> {
    const dir = this.dir(id)
    return Promise.all(repos.map(async repo => {
      const main = join(this.#options.workspace, pathOf(repo.repo))
      const copy = join(dir, pathOf(repo.repo))
      const [hasMain, hasCopy] = await Promise.all([exists(join(main, '.git')), exists(join(copy, '.git'))])
      return { ...repo, ...(hasMain && { main }), ...(hasCopy && { copy }) }
    }))
  }

  /** Takes the copy and its branches away; the files themselves go in the background. Repeating it is harmless. */
  async remove(id: string, repos: readonly Pick<CopyRepo, 'repo'>[]): Promise<void> {
    const dir = this.dir(id)
    await this.#locks.with(id, async () => {
      const made = await this.#made(id)
      const place = await this.#trash(dir)
      failpoint('agent.copy.trashed')
      await Promise.all(repos.map(async ({ repo }) => {
        const known = made?.repos.find(each => each.repo === repo) ?? (await repositoryAt(this.#options, repo))
        const common = known?.common
        if (common) await this.#locks.with(common, () => forgetTree(common, join(dir, pathOf(repo)), `agent/${id}`))
      }))
      failpoint('agent.copy.forgotten')
      await rm(this.#note(id), { force: true })
      if (place) this.#delete(place)
    })
  }

  /** Commits the rest, takes the copy away and parks its branches; the next `ensure` brings all back. */
  async retire(id: string, repos: readonly CopyRepo[]): Promise<void> {
    const dir = this.dir(id)
    await this.#locks.with(id, async () => {
      const made = (await exists(dir)) ? await this.#made(id) : undefined
      if (made && (await whole(dir, made.repos))) {
        await this.#settle(id, made)
        for (const { repo } of made.repos) await this.#commitAll(this.#tree(id, made, repo))
      }
      // From here on the copy counts as half-made: a crash leaves one that the next turn makes anew from its branch.
      await rm(this.#note(id), { force: true })
      failpoint('agent.copy.retiring')
      const place = await this.#trash(dir)
      failpoint('agent.copy.away')
      for (const { repo } of repos) {
        const common = (made?.repos.find(each => each.repo === repo) ?? (await repositoryAt(this.#options, repo)))?.common
        if (common) await this.#locks.with(common, () => parkTree(common, join(dir, pathOf(repo)), `agent/${id}`))
      }
      if (place) this.#delete(place)
    })
  }

  /** Commits everything in a tree that is to go; what no branch would keep is never given up. */
  async #commitAll(tree: Tree): Promise<void> {
    const { attached, clean } = await commitTree(tree, MESSAGE)
    if (attached && clean) return
    const found = attached ? 'it holds work that cannot be committed' : `it does not stand on its branch ${tree.branch}`
    refuse('conflict', `the private copy of ${tree.repo} cannot be put away: ${found}; have the agent put that right, or discard the work`)
  }

  /** Takes away the copies of conversations that are gone, what a crash left of them, and the trash. */
  async prune(ids: Iterable<string>): Promise<void> {
    const kept = new Set(ids)
    const { folder } = this.#options
    const checkouts = join(folder, 'checkouts')
    const names = async (path: string) => readdir(path).catch(() => [] as string[])
    const notes = (await names(join(folder, 'made'))).map(name => name.replace(/\.json$/, ''))
    const repositories = await findRepositories(this.#options)
    const entries = (await Promise.all(repositories.map(({ common }) => entriesBelow(common, checkouts)))).flat()
    const left = entries.map(({ copy }) => copy.slice(checkouts.length + 1).split('/')[0] ?? '')
    for (const id of new Set([...(await names(checkouts)), ...notes, ...left])) {
      if (!kept.has(id) && ID.test(id)) await this.remove(id, repositories)
    }
    for (const name of await names(join(folder, 'trash'))) this.#delete(join(folder, 'trash', name))
  }

  /** What the wall of a turn needs to know: of this conversation's copy, or without an id of the shared tree. */
  async wall(id?: string): Promise<TurnWall> {
    const { workspace, data, hidden = [] } = this.#options
    if (id !== undefined) {
      const made = await this.#need(id)
      return { ...this.#wall(id, made), shown: await this.#shown(id, made) }
    }
    const gitdirs = join(data, 'gitdirs')
    const names = await readdir(gitdirs).catch(() => [] as string[])
    return { workspace, data, hide: hidden, exposed: names.map(name => join(gitdirs, name)) }
  }

  /** Keeps a spare ready that the next conversation's copy is made of; one that is ready is left alone. */
  async warm(): Promise<void> {
    await this.#locks.with(SPARE, async () => {
      const dir = this.#place(SPARE)
      const ready = await this.#made(SPARE)
      if (ready && (await whole(dir, ready.repos))) return
      const sources = await findRepositories(this.#options)
      await this.#clear(SPARE, dir)
      const made: Made = { repos: [], shown: [] }
      for (const source of sources) await this.#add(made, SPARE, dir, source)
      if (sources.length > 0) await this.#write(SPARE, made)
    })
  }

  /** Waits until everything that was thrown away is really gone. */
  async settled(): Promise<void> {
    await Promise.all(this.#deletions)
  }

  #place(id: string): string {
    return join(this.#options.folder, 'checkouts', id)
  }

  #note(id: string): string {
    return join(this.#options.folder, 'made', `${id}.json`)
  }

  #mark(id: string, repo: string): string {
    return join(this.#options.folder, 'rebasing', `${id}:${encodeURIComponent(repo)}`)
  }

  #made(id: string): Promise<Made | undefined> {
    return readJson<Made>(this.#note(id))
  }

  async #need(id: string): Promise<Made> {
    const made = (await exists(this.dir(id))) ? await this.#made(id) : undefined
    return made
      ?? refuse('conflict', 'expected a private copy, found none: it was cleaned up, and its work is on its branch')
  }

  /** A copy git can work on: what a turn left where git keeps files of its own is cleared away. */
  async #usable(id: string): Promise<Made> {
    const made = await this.#need(id)
    for (const { common, entry } of made.repos) await clearPlaces(common, `agent/${id}`, entry)
    if (await whole(this.dir(id), made.repos)) return made
    return refuse('conflict', 'the private copy is damaged: say something to its agent, and it is made again from its branch')
  }

  #wall(id: string, made: Made): TurnWall {
    const { workspace, data, hidden = [] } = this.#options
    const gitdirs = made.repos.map(({ repo, common, entry }) => ({
      path: pathOf(repo), common, worktree: entry, branch: `agent/${id}`,
      exclude: this.#foreign(made, repo).map(patternOf),
    }))
    return { workspace, data, hide: hidden, copy: { dir: this.#place(id), gitdirs } }
  }

  /** The dependency folders to show: those still there, where the copy has no content of its own. */
  async #shown(id: string, made: Made): Promise<{ from: string; to: string }[]> {
    const { workspace } = this.#options
    const dir = this.dir(id)
    const found: { from: string; to: string }[] = []
    for (const path of made.shown) {
      const from = join(workspace, path)
      const place = join(dir, path)
      const [source, target] = await Promise.all([from, place].map(each => realpath(each).catch(() => undefined)))
      if (source !== from || target !== place) continue
      const held = await readdir(place).catch(() => ['?'])
      if (held.length === 0) found.push({ from, to: from })
    }
    return found
  }

  #tree(id: string, made: Made, repo: string): Tree {
    if (!made.repos.some(each => each.repo === repo)) refuse('not-found', `the private copy has no repository ${repo}`)
    const { workspace } = this.#options
    return { repo, branch: `agent/${id}`, workspace, wall: this.#wall(id, made), foreign: this.#foreign(made, repo) }
  }

  /** What lies in a repository's tree and is not its own. */
  #foreign(made: Made, repo: string): string[] {
    const others = made.repos.map(each => pathOf(each.repo)).filter(path => path !== '' && path !== pathOf(repo))
    return ['.sandbox', ...[...others, ...made.shown].flatMap(path => below(repo, path) ?? [])]
  }

  /** Moves the branch onto the main line; answers the paths it stopped at when it did not apply. */
  async #rebase(id: string, tree: Tree, main: Repository, copy: CopyRepo, tip: string): Promise<string[] | undefined> {
    const from = await workBegins(main, copy, tip)
    const mark = this.#mark(id, copy.repo)
    await mkdir(dirname(mark), { recursive: true, mode: 0o700 })
    await writeAtomic(mark, tip)
    failpoint('agent.copy.marked')
    const stopped = await rebaseTree(tree, main.head, from)
    failpoint('agent.copy.rebased')
    await rm(mark, { force: true })
    return stopped
  }

  /** Undoes what a killed daemon left half-way in a copy that is whole. */
  async #settle(id: string, made: Made): Promise<void> {
    for (const { repo, common, entry } of made.repos) {
      await clearPlaces(common, `agent/${id}`, entry)
      await dropLocks(common, entry, `agent/${id}`)
      const mark = this.#mark(id, repo)
      if (!(await exists(mark))) continue
      await abortRebase(this.#tree(id, made, repo))
      await rm(mark, { force: true })
    }
  }

  async #make(id: string, dir: string, known: readonly CopyRepo[], starts: readonly CopyStart[]): Promise<CopyRepo[]> {
    const named = await Promise.all(known.map(({ repo }) => repositoryAt(this.#options, repo)))
    const found = known.length > 0 ? named.filter(each => each !== undefined) : await findRepositories(this.#options)
    const sources = found.map(source => ({ ...source, head: starts.find(({ repo }) => repo === source.repo)?.tip ?? source.head }))
    if (sources.length === 0) {
      refuse('unprocessable', 'expected a git repository with at least one commit in the workspace, found none: '
        + 'run `git init`, `git add -A` and `git commit` there, or work in the shared tree')
    }
    await this.#clear(id, dir)
    if (known.length > 0) for (const { common } of sources) await this.#locks.with(common, () => unparkBranch(common, `agent/${id}`))
    const adopted = known.length === 0 && await this.#adopt(id, dir, sources)
    const made: Made = adopted || { repos: [], shown: [] }
    const repos: CopyRepo[] = []
    for (const source of sources) {
      const before = known.find(({ repo }) => repo === source.repo)
      const kept = !adopted && await this.#add(made, id, dir, source, `agent/${id}`, before !== undefined)
      const start = starts.find(({ repo }) => repo === source.repo)
      const fresh = { repo: source.repo, base: start?.base ?? source.head, ...(start?.pinned && { pinned: start.pinned }) }
      repos.push(before && kept ? { ...before } : fresh)
    }
    made.shown = await this.#share(dir, sources)
    failpoint('agent.copy.filled')
    await this.#write(id, made)
    failpoint('agent.copy.made')
    return repos
  }

  /** Adds a filled tree to a copy that is being made, and answers whether its branch was there and was kept. */
  async #add(
    made: Made, id: string, dir: string, source: Repository, branch?: string, rebuild?: boolean,
  ): Promise<boolean> {
    const { repo, common, head } = source
    // Two additions at once read each other's half-written entries and fail.
    const copy = join(dir, pathOf(repo))
    const { kept, entry } = await this.#locks.with(common, () => addTree(source, copy, branch, rebuild))
    made.repos.push({ repo, common, entry, head })
    failpoint('agent.copy.added')
    // A nested tree is filled into the folder its parent's branch left for it.
    await fillTree(this.#tree(id, made, repo))
    return kept
  }

  /** Turns the spare into this conversation's copy, when there is one of the same repositories. */
  async #adopt(id: string, dir: string, sources: readonly Repository[]): Promise<Made | undefined> {
    if (this.#locks.held(SPARE)) return undefined
    return this.#locks.with(SPARE, async () => {
      const spare = this.#place(SPARE)
      const made = await this.#made(SPARE)
      const same = made?.repos.length === sources.length
        && sources.every((source, index) =>
          source.repo === made.repos[index]?.repo && source.common === made.repos[index]?.common)
      if (!made || !same || !(await whole(spare, made.repos))) return undefined
      // From here on a crash leaves a half-made copy, which the next call makes anew.
      await rm(this.#note(SPARE))
      failpoint('agent.spare.claimed')
      await rename(spare, dir)
      failpoint('agent.spare.moved')
      for (const [index, source] of sources.entries()) {
        const { entry, head } = made.repos[index]!
        await attachTree(source, entry, join(dir, pathOf(source.repo)), `agent/${id}`)
        failpoint('agent.spare.attached')
        if (head !== source.head) await fillTree(this.#tree(id, made, source.repo))
      }
      return made
    })
  }

  /** Puts away whatever is in a copy's place. */
  async #clear(id: string, dir: string): Promise<void> {
    await rm(this.#note(id), { force: true })
    const half = await this.#trash(dir)
    if (half) this.#delete(half)
    await mkdir(dirname(dir), { recursive: true, mode: 0o700 })
  }

  async #write(id: string, made: Made): Promise<void> {
    await mkdir(dirname(this.#note(id)), { recursive: true, mode: 0o700 })
    await writeAtomic(this.#note(id), JSON.stringify(made), { flush: true })
  }

  /** Shows the main checkout's untracked dependencies inside: a mount behind the wall, a link where there is none. */
  async #share(dir: string, sources: readonly Repository[]): Promise<string[]> {
    const enforced = (await wallKind()) !== 'none'
    const shown: string[] = []
    for (const source of sources) {
      for (const path of await dependenciesOf(source)) {
        const place = join(dir, pathOf(source.repo), path)
        if (await exists(place)) continue
        await mkdir(enforced ? place : dirname(place), { recursive: true })
        if (!enforced) await symlink(join(source.dir, path), place)
        shown.push(join(pathOf(source.repo), path))
      }
    }
    return shown
  }

  /** Puts a folder out of the way in one step and answers where it is now. */
  async #trash(dir: string): Promise<string | undefined> {
    if (!(await exists(dir))) return undefined
    const place = join(this.#options.folder, 'trash', randomBytes(9).toString('hex'))
    await mkdir(dirname(place), { recursive: true, mode: 0o700 })
    await rename(dir, place)
    return place
  }

  /** Deletes in a process of its own: a hundred thousand files would keep the daemon's own file calls waiting. */
  #delete(place: string): void {
    const failed = (error: unknown) => this.#options.log?.warn('a copy could not be deleted', { error: String(error) })
    const deletion = ownProgram('rm')
      .then(program => run(program ?? 'rm', ['-rf', '--', place], { cwd: '/', env: listEnv() }))
      .then(({ code, stderr }) => (code === 0 ? undefined : Promise.reject(new Error(stderr.slice(0, 500)))))
      .catch(failed)
      .finally(() => this.#deletions.delete(deletion))
    this.#deletions.add(deletion)
  }
}
