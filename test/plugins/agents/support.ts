import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, lstatSync, readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Files } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { CheckoutRepo, CopyRepo } from '../../../plugins/agent/contract.js'
import { ScratchRepos } from '../../../plugins/agents/work/scratch-repos.js'
import { Refs } from '../../../plugins/agents/work/git-folders.js'
import { landRepo, type LandingDeps, type RepoLanding } from '../../../plugins/agents/landing/landing.js'
import { LandingRecords } from '../../../plugins/agents/landing/record.js'

/** Runs git like a user. */
export const inGit = (folder: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.org', ...args], {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CEILING_DIRECTORIES: join(folder, '..'),
    },
  })

/** Whole JSON files kept in memory. */
export const memoryFiles = (): Files => {
  const kept = new Map<string, string>()
  return {
    read: async name => (kept.has(name) ? JSON.parse(kept.get(name)!) : undefined),
    write: async (name, value) => void kept.set(name, JSON.stringify(value)),
    remove: async name => void kept.delete(name),
    list: async prefix => [...kept.keys()].filter(name => name.startsWith(prefix)),
  }
}

/** Every file and folder of a tree except its git folder: the type and the bytes. */
export const treeOf = (root: string, below = ''): { [path: string]: string } => {
  const found: { [path: string]: string } = {}
  for (const name of readdirSync(join(root, below))) {
    const path = below === '' ? name : `${below}/${name}`
    if (name === '.git') continue
    const stat = lstatSync(join(root, path))
    if (stat.isSymbolicLink()) found[path] = `link ${readlinkSync(join(root, path))}`
    else if (stat.isDirectory()) Object.assign(found, { [`${path}/`]: 'folder' }, treeOf(root, path))
    else found[path] = `${stat.mode & 0o100 ? 'program' : 'file'} ${readFileSync(join(root, path)).toString('latin1')}`
  }
  return found
}

/** A main checkout with a private copy on a branch beside it. */
export class Bed {
  readonly folder: string
  readonly main: string
  readonly copy: string
  readonly branch: string
  readonly deps: LandingDeps
  repo: CopyRepo

  constructor(t: Test, fill: (main: string) => void, branch = 'agent/c-1') {
    this.folder = realpathSync(t.testdir())
    this.main = join(this.folder, 'workspace')
    this.copy = join(this.folder, 'copy')
    this.branch = branch
    mkdirSync(this.main)
    inGit(this.main, 'init', '-q', '-b', 'main')
    fill(this.main)
    this.commit(this.main, 'first')
    inGit(this.main, 'worktree', 'add', '-q', '-b', branch, this.copy)
    this.repo = { repo: 'root', base: this.head }
    this.deps = {
      workspace: this.main,
      scratchRepos: new ScratchRepos(this.folder, this.wall),
      refs: new Refs(),
      locks: new KeyedMutex(),
      records: new LandingRecords(memoryFiles()),
      now: Date.now,
    }
  }

  /** The wall of git in the checkout. */
  get wall(): { readonly workspace: string; readonly data: string } {
    return { workspace: this.main, data: join(this.folder, 'data') }
  }

  get head(): string {
    return inGit(this.main, 'rev-parse', 'HEAD').trim()
  }

  get tip(): string {
    return inGit(this.copy, 'rev-parse', 'HEAD').trim()
  }

  get checkout(): CheckoutRepo {
    return { ...this.repo, main: this.main, copy: this.copy, gitdir: join(this.main, '.git/worktrees/copy') }
  }

  commit(folder: string, message: string): void {
    inGit(folder, 'add', '-A')
    inGit(folder, 'commit', '-q', '--allow-empty', '--no-verify', '-m', message)
  }

  /** Commits the agent's work and lands it, like the daemon. */
  async land(span: 'outstanding' | 'cumulative' = 'outstanding'): Promise<RepoLanding | undefined> {
    if (inGit(this.copy, 'status', '--porcelain') !== '') this.commit(this.copy, 'work')
    const landed = await landRepo(
      this.deps,
      { conversation: 'c-1', branch: this.branch, span },
      this.checkout,
      this.tip,
    )
    if (landed?.outcome) this.repo = landed.outcome
    if (landed?.record) await this.deps.records.remove(landed.record)
    return landed
  }

  /** The index of the main checkout, byte by byte, with its HEAD and refs. */
  git(): string {
    return (
      readFileSync(join(this.main, '.git', 'index')).toString('hex')
      + inGit(this.main, 'show-ref', '--head', 'HEAD', 'main')
    )
  }
}
