import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Conversation } from '../../../plugins/agent/contract.js'
import { ScratchRepos } from '../../../plugins/agents/work/scratch-repos.js'
import { gitFolders, Refs } from '../../../plugins/agents/work/git-folders.js'
import { headMove } from '../../../plugins/agents/landing/head-move.js'
import type { Repository } from '../../../plugins/agents/work/repository.js'
import { KnownStatuses, NOWHERE, type KnownStatus } from '../../../plugins/agents/work/known-statuses.js'
import { BranchStatuses } from '../../../plugins/agents/work/branch-status.js'
import { Bed, inGit, memoryFiles } from './support.js'

const moveOf = async (bed: Bed, from: string, to: string, commits: readonly string[]) => {
  const here = { folders: gitFolders(bed.main)!, tip: from } as Repository
  return new ScratchRepos(bed.folder, { workspace: bed.main, data: join(bed.folder, 'data') }).with(here, scratch =>
    headMove(scratch, from, to, commits),
  )
}

const write = (folder: string, path: string, text: string): void => {
  mkdirSync(join(folder, path, '..'), { recursive: true })
  writeFileSync(join(folder, path), text)
}

t.test('a change of main reports the affected histories and paths', async t => {
  const bed = new Bed(t, main => write(main, 'a/b.txt', 'a\n'))
  const first = bed.head
  write(bed.copy, 'own.txt', 'own\n')
  bed.commit(bed.copy, 'own')
  const own = bed.tip
  write(bed.main, 'c/d/e.txt', 'e\n')
  bed.commit(bed.main, 'second')
  const second = bed.head
  inGit(bed.main, 'branch', 'later')
  const forward = (await moveOf(bed, first, second, [own, first]))!
  t.same([own, first, second].map(forward.parts), [false, false, true])
  t.same(['a/b.txt', 'c', 'c/d', 'c/d/e.txt', 'c/d/e.txt/f', 'c/d/other', 'cc'].map(forward.differs), [
    false,
    true,
    true,
    true,
    true,
    false,
    false,
  ])
  inGit(bed.main, 'merge', '-q', '--no-edit', bed.branch)
  const merged = (await moveOf(bed, second, bed.head, [own, second, first]))!
  t.same(
    [own, second, first].map(merged.parts),
    [true, false, false],
    'merged commits are in only one of the two heads',
  )
  const back = (await moveOf(bed, bed.head, second, [own]))!
  t.ok(back.parts(own), 'in both directions')
  const missing = '1'.repeat(40)
  t.notOk((await moveOf(bed, first, second, [missing]))!.parts(missing))
  t.equal(await moveOf(bed, missing, second, []), undefined, 'a missing head has no result')
  inGit(bed.main, 'checkout', '-q', '--orphan', 'other')
  bed.commit(bed.main, 'unrelated')
  t.equal(await moveOf(bed, second, bed.head, []), undefined, 'unrelated heads have no result')
  inGit(bed.main, 'checkout', '-qf', 'later')
  write(bed.main, 'c/.gitattributes', '*.txt text\n')
  bed.commit(bed.main, 'attributes')
  t.equal(await moveOf(bed, second, bed.head, []), undefined, 'no result if attributes have changed')
})

const talk = (bed: Bed, id: string): Conversation => ({
  id,
  titleBy: 'prompt',
  createdAt: 0,
  updatedAt: 0,
  openedBy: 'ada@example.org',
  lastBy: 'ada@example.org',
  provider: 'script',
  harness: 'native',
  branch: `agent/${id}`,
  repos: [{ repo: 'root', base: bed.head }],
  totals: { turns: 1, toolUses: 0, helpers: 0, costUsd: 0, inputTokens: 0, outputTokens: 0 },
})

/** The result of a change that leaves the uncommitted tree unchanged. */
const STAYS = 'stays'

t.test('after every change of main an updated branch status equals a new one', async t => {
  const bed = new Bed(t, main => {
    write(main, 'shared.txt', 'one\ntwo\nthree\n')
    write(main, 'folder/file.txt', 'file\n')
  })
  const talks: Conversation[] = []
  const branch = (id: string, path: string, text: string): void => {
    talks.push(talk(bed, id))
    inGit(bed.copy, 'checkout', '-q', '--detach', bed.head)
    write(bed.copy, path, text)
    bed.commit(bed.copy, id)
    inGit(bed.main, 'branch', `agent/${id}`, bed.tip)
  }
  branch('shared', 'shared.txt', 'one\ntwo\nagent\n')
  branch('own', 'own.txt', 'own\n')
  branch('below', 'folder/file.txt', 'agent\n')
  branch('new', 'new/file.txt', 'new\n')
  const failures: string[] = []
  const files = memoryFiles()
  const made = () =>
    new BranchStatuses({
      workspace: bed.main,
      scratchRepos: new ScratchRepos(bed.folder, { workspace: bed.main, data: join(bed.folder, 'data') }),
      refs: new Refs(),
      signal: new AbortController().signal,
      files,
      failed: message => failures.push(message),
    })
  const all = async (statuses: BranchStatuses) => {
    const round = statuses.round()
    return Promise.all(talks.map(async conversation => [conversation.id, await statuses.of(conversation, round)]))
  }
  let statuses = made()
  await all(statuses)
  const moves: readonly (readonly [string, () => unknown])[] = [
    ['another file is committed', () => write(bed.main, 'other.txt', 'other\n')],
    ['the same work is committed', () => write(bed.main, 'own.txt', 'own\n')],
    [
      'the work is removed in the tree',
      () => {
        rmSync(join(bed.main, 'own.txt'))
        return STAYS
      },
    ],
    [
      'main is reset and the tree is kept',
      () => {
        inGit(bed.main, 'reset', '-q', '--soft', 'HEAD~1')
        return STAYS
      },
    ],
    ['the same file is changed elsewhere', () => write(bed.main, 'shared.txt', 'zero\none\ntwo\nthree\n')],
    [
      'a folder becomes a file',
      () => {
        inGit(bed.main, 'rm', '-rq', 'folder')
        write(bed.main, 'folder', 'now a file\n')
      },
    ],
    ['a file stands where a folder would be', () => write(bed.main, 'new', 'in the way\n')],
    ['a branch is merged', () => inGit(bed.main, 'merge', '-q', '-X', 'ours', '--no-edit', 'agent/shared')],
    ['main goes back', () => inGit(bed.main, 'reset', '-q', '--hard', 'HEAD~2')],
    ['main is another branch', () => inGit(bed.main, 'checkout', '-q', '-b', 'side', 'HEAD~1')],
    ['attributes are committed', () => write(bed.main, '.gitattributes', '*.txt text eol=crlf\n')],
    ['main begins anew', () => inGit(bed.main, 'checkout', '-q', '--orphan', 'anew')],
  ]
  for (const [what, move] of moves) {
    if (move() !== STAYS && inGit(bed.main, 'status', '--porcelain') !== '') bed.commit(bed.main, what)
    t.same(await all(statuses), await all(made()), what)
    await statuses.close()
    statuses = made()
    await statuses.open()
    t.same(await all(statuses), await all(made()), `${what}, after a restart`)
  }
  t.same(failures, [])
})

const known = (paths: string): KnownStatus => ({
  repo: 'root',
  head: 'h',
  work: 'w',
  commits: ['c'],
  outstanding: false,
  totals: { files: 0, insertions: 0, deletions: 0 },
  presence: { landed: 0, present: 0 },
  paths,
  stamp: NOWHERE,
})

t.test('the cache is limited in bytes, and an unreadable file counts as missing', async t => {
  const failures: string[] = []
  const failed = (message: string) => void failures.push(message)
  const files = memoryFiles()
  const one = new KnownStatuses({ workspace: '/w', files, failed })
  const large = 'x'.repeat(1024 * 1024)
  for (let n = 0; n < 40; n++) one.keep(`c-${n} root`, known(large))
  const kept = () => Array.from({ length: 40 }, (_, n) => n).filter(n => one.get(`c-${n} root`))
  t.same(
    kept(),
    Array.from({ length: 7 }, (_, n) => n),
    'the first one is kept',
  )
  one.keep('c-11 root', known(''))
  one.forget('c-1')
  t.ok(one.get('c-11 root'), 'only of that name')
  t.equal(one.get('c-1 root'), undefined)
  one.keep('c-30 root', known(large))
  t.same(kept().at(-1), 30, 'its space is free')
  one.keep('c-2 root', known(large.repeat(40)))
  t.equal(one.get('c-2 root'), undefined, 'an outdated answer is not returned')
  await one.close()
  const two = new KnownStatuses({ workspace: '/w', files, failed })
  await two.open()
  t.same(two.under('root', 'h').length, 7)
  t.same(two.under('root', 'other'), [])
  const elsewhere = new KnownStatuses({ workspace: '/other', files, failed })
  await elsewhere.open()
  t.same(elsewhere.under('root', 'h'), [], 'another workspace has no entries')
  const broken = {
    read: async () => Promise.reject(new Error('torn')),
    write: async () => Promise.reject(new Error('full')),
  }
  const three = new KnownStatuses({ workspace: '/w', files: broken, failed })
  await three.open()
  three.keep('c root', known(''))
  await three.close()
  t.equal(failures.length, 2)
})
