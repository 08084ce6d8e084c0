import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Conversation } from '../../../plugins/agent/contract.js'
import { ScratchRepos } from '../../../plugins/agents/work/scratch-repos.js'
import { gitFolders, operationIn, Refs } from '../../../plugins/agents/work/git-folders.js'
import { leadsOut } from '../../../plugins/agents/landing/link-target.js'
import { excludedPaths } from '../../../plugins/agents/work/excluded-paths.js'
import { BranchStatuses } from '../../../plugins/agents/work/branch-status.js'
import { Bed, inGit } from './support.js'

const talk = (bed: Bed, id: string, branch: string): Conversation => ({
  id,
  titleBy: 'prompt',
  createdAt: 0,
  updatedAt: 0,
  openedBy: 'ada@example.org',
  lastBy: 'ada@example.org',
  provider: 'script',
  harness: 'native',
  branch,
  repos: [{ repo: 'root', base: bed.head }],
  totals: { turns: 1, toolUses: 0, helpers: 0, costUsd: 0, inputTokens: 0, outputTokens: 0 },
})

const standingsOf = (bed: Bed) => {
  const failures: string[] = []
  const statuses = new BranchStatuses({
    workspace: bed.main,
    scratchRepos: new ScratchRepos(bed.folder, { workspace: bed.main, data: join(bed.folder, 'data') }),
    refs: new Refs(),
    signal: new AbortController().signal,
    failed: message => failures.push(message),
  })
  return { statuses, failures }
}

t.test(
  'a branch status needs no process while nothing changed, and is computed again when a file or commit does',
  async t => {
    const bed = new Bed(t, main => writeFileSync(join(main, 'a.txt'), 'a\n'))
    writeFileSync(join(bed.copy, 'a.txt'), 'agent\n')
    bed.commit(bed.copy, 'work')
    const conversations = Array.from({ length: 40 }, (_, at) => {
      inGit(bed.main, 'update-ref', `refs/heads/agent/n-${at}`, bed.tip)
      return talk(bed, `n-${at}`, `agent/n-${at}`)
    })
    inGit(bed.main, 'pack-refs', '--all')
    const { statuses, failures } = standingsOf(bed)
    for (const conversation of conversations) {
      t.same(await statuses.of(conversation), { work: 'outstanding', diff: { files: 1, insertions: 1, deletions: 1 } })
    }
    const { PATH } = process.env
    process.env.PATH = ''
    const round = statuses.round()
    try {
      for (const conversation of conversations) t.equal((await statuses.of(conversation, round)).work, 'outstanding')
    } finally {
      process.env.PATH = PATH
    }
    t.same(failures, [], 'no git was started')
    writeFileSync(join(bed.main, 'a.txt'), 'agent\n')
    t.equal((await statuses.of(conversations[0]!)).work, 'landed')
    inGit(bed.main, 'checkout', '-q', '--', 'a.txt')
    t.equal((await statuses.of(conversations[0]!)).work, 'outstanding')
    inGit(bed.main, 'merge', '-q', '--ff-only', bed.branch)
    t.equal((await statuses.of(conversations[0]!)).work, 'landed')
  },
)

t.test('without work and in the shared tree the status is none, and an unreadable branch is reported', async t => {
  const bed = new Bed(t, main => writeFileSync(join(main, 'a.txt'), 'a\n'))
  const { statuses, failures } = standingsOf(bed)
  const conversation = talk(bed, 'c-1', bed.branch)
  t.same(await statuses.of(conversation), { work: 'none' })
  const { branch: _branch, ...shared } = conversation
  t.same(await statuses.of(shared), { work: 'none' })
  inGit(bed.main, 'update-ref', '--no-deref', 'refs/heads/agent/broken', bed.head)
  writeFileSync(join(bed.main, '.git/refs/heads/agent/broken'), `${'1'.repeat(40)}\n`)
  t.same(await statuses.of(talk(bed, 'broken', 'agent/broken')), { work: 'outstanding' }, 'it never counts as landed')
  t.same(failures, ['comparing a repository failed'])
})

t.test('refs are read from the disk as git reads them', t => {
  const bed = new Bed(t, main => writeFileSync(join(main, 'a.txt'), 'a\n'))
  const refs = new Refs()
  const main = gitFolders(bed.main)!
  const copy = gitFolders(bed.copy)!
  t.equal(copy.common, main.common)
  t.same(refs.head(main), { commit: bed.head, branch: 'main' })
  t.same(refs.head(copy), { commit: bed.tip, branch: bed.branch })
  inGit(bed.main, 'pack-refs', '--all')
  t.equal(refs.commit(main, 'refs/heads/main'), bed.head)
  bed.commit(bed.main, 'second')
  t.equal(refs.commit(main, 'refs/heads/main'), bed.head)
  t.equal(refs.commit(main, 'refs/heads/none'), undefined)
  t.equal(refs.commit(main, 'refs/../HEAD'), undefined)
  inGit(bed.main, 'symbolic-ref', 'refs/heads/loop', 'refs/heads/loop')
  t.equal(refs.commit(main, 'refs/heads/loop'), undefined)
  inGit(bed.main, 'checkout', '-q', '--detach')
  t.same(refs.head(main), { commit: bed.head })
  t.equal(gitFolders(bed.folder), undefined)
  t.equal(operationIn(main), undefined)
  t.end()
})

t.test('a path is never work in any spelling of the closed names', t => {
  for (const path of [
    '.git/config',
    'a/.git/x',
    '.GIT/x',
    '.git./x',
    '.git /x',
    '.g\u200Cit/x',
    'git~1/x',
    '.git:stream',
    '.sandbox/x',
    '.SandBox/x',
    '.sandbox',
    '.sandbox. /x',
    '../x',
    'a//b',
    './a',
    '',
  ]) {
    t.ok(excludedPaths('root', path), JSON.stringify(path))
  }
  for (const path of [
    '.gitignore',
    '.github/x',
    'a/.sandbox/x',
    'git/x',
    '.sandbox/config/workspace-extensions/x',
    '...',
    'a.git/x',
  ])
    t.notOk(excludedPaths('root', path), path)
  t.notOk(excludedPaths('nested', '.sandbox/x'))
  t.end()
})

t.test('a link leads outside if any link on its path does', async t => {
  const root = t.testdir({ in: { file: '' }, hop: t.fixture('symlink', '..'), loop: t.fixture('symlink', 'loop') })
  mkdirSync(join(root, 'ws'))
  const out = (target: string, planned = {}) => leadsOut(root, join(root, 'in/link'), target, planned)
  for (const target of ['..', 'file', '../none/at/all', `${root}/in`, '../ws/../in/./file'])
    t.notOk(await out(target), target)
  for (const target of [
    '/etc',
    '../..',
    '../hop',
    '../hop/x',
    '../loop',
    '../.git/hooks',
    '../.sandbox/x',
    '../none/../../..',
  ])
    t.ok(await out(target), target)
  t.ok(await out('other', { [join(root, 'in/other')]: '/etc' }))
})
