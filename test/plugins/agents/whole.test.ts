import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Refusal } from '../../../sdk/refusal.js'
import { bytesOf } from '../../attack/support.js'
import { daemonWith, inGit, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { runTurn } from '../../support/turns.js'

const GROUPS = ['system', 'agent', 'agents']
const NESTED = ['second repo', 'nested/one']
const LONG = Array.from({ length: 40 }, (_, at) => `line ${at + 1}\n`).join('')
const EDIT = '- line 25\n| + agent'

/** Every file and folder, with modes and hashes, except git's own. */
const treeOf = (folder: string) => bytesOf(folder, /(^|\/)\.git$|^\.sandbox$/)

const copyOf = ({ data }: Support, id: string) => join(data, 'agent/checkouts', id)
const books = ({ workspace }: Support): string[] =>
  ['', ...NESTED].map(
    path =>
      readFileSync(join(workspace, path, '.git/index')).toString('hex')
      + inGit(join(workspace, path), 'show-ref', '--head', 'HEAD', 'main'),
  )

/** A workspace with two repositories inside another one. */
const started = async (t: Test): Promise<Support> => {
  const files = {
    'moves.txt': LONG,
    'edit me ü.txt': LONG,
    'old/deep/a.txt': 'a\n',
    'old/b.txt': 'b\n',
    'goes.txt': 'goes\n',
    tool: '#!/bin/sh\n',
  }
  const daemon = await daemonWith(t, GROUPS, { files })
  for (const path of NESTED) {
    const folder = join(daemon.workspace, path)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'moves.txt'), LONG)
    mkdirSync(join(folder, 'old'))
    writeFileSync(join(folder, 'old/n.txt'), 'n\n')
    inGit(folder, 'init', '-q', '-b', 'main')
    inGit(folder, 'add', '-A')
    inGit(folder, 'commit', '-qm', 'first')
  }
  return daemon
}

t.test('two commits during a landing are made or refused, nothing is lost, and git finds no fault', async t => {
  const files = { 'moves.txt': LONG, 'a.txt': 'a\n', 'b.txt': 'b\n' }
  const daemon = await daemonWith(t, [...GROUPS, 'areas', 'git'], { files })
  const { client, workspace } = daemon
  await runTurn(client, 'c-1', `edit moves.txt\n| ${EDIT}`, { isolated: true })
  for (const name of ['a', 'b']) writeFileSync(join(workspace, `${name}.txt`), `${name} changed\n`)
  const refusals: Refusal[] = []
  const orRefused = <Answer>(asked: Promise<Answer>) =>
    asked.catch((error: unknown) => {
      if (!(error instanceof Refusal)) throw error
      refusals.push(error)
      return undefined
    })
  const commit = (name: string) =>
    orRefused(client.call('POST /git/{repo}/commit', { repo: 'root', message: name, paths: [`${name}.txt`] }))
  const [landing, ...commits] = await Promise.all([
    orRefused(client.call('POST /agents/{id}/land', { id: 'c-1' })),
    commit('a'),
    commit('b'),
  ])
  for (const refused of refusals) t.match(refused, { status: 409, message: /\w+ \w+/ })
  const made = ['a', 'b'].filter((_, at) => commits[at]?.committed)
  t.same(inGit(workspace, 'log', '--format=%s').trim().split('\n').sort(), [...made, 'first'].sort())
  t.equal(inGit(workspace, 'fsck', '--strict', '--no-dangling'), '')
  if (!landing?.landed) t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: true })
  t.match(readFileSync(join(workspace, 'moves.txt'), 'utf8'), /line 24\nagent\nline 26/)
  for (const name of ['a', 'b']) {
    t.equal(readFileSync(join(workspace, `${name}.txt`), 'utf8'), `${name} changed\n`)
    if (!made.includes(name)) t.match(await commit(name), { committed: true })
    t.equal(inGit(workspace, 'show', `HEAD:${name}.txt`), `${name} changed\n`)
  }
  t.equal(inGit(workspace, 'status', '--porcelain', '--untracked-files=no'), ' M moves.txt\n')
})

t.test('the work in three repositories lands exactly: renames, removed folders, unusual names and 50 MiB', async t => {
  const daemon = await started(t)
  const { client, workspace } = daemon
  await runTurn(
    client,
    'c-1',
    [
      'move moves.txt -> moved/to here ü.txt',
      'edit moved/to here ü.txt',
      `| ${EDIT}`,
      'edit edit me ü.txt',
      `| ${EDIT}`,
      'run rm -r old; chmod 755 tool; head -c 52428800 /dev/urandom > big.bin',
      ...NESTED.flatMap(path => [
        `move ${path}/moves.txt -> ${path}/in/ünd/moved.txt`,
        `edit ${path}/in/ünd/moved.txt`,
        `| ${EDIT}`,
        `run rm -r '${path}/old'; head -c 4096 /dev/urandom > '${path}/some bytes'`,
      ]),
      'say done',
    ].join('\n'),
    { isolated: true },
  )
  const before = books(daemon)
  const { repos } = await client.call('GET /agents/{id}/diff', { id: 'c-1' })
  t.same(
    repos.map(({ repo }) => repo),
    ['root', ...NESTED],
  )
  t.match(
    repos[0]!.changes.find(({ path }) => path === 'moved/to here ü.txt'),
    { status: 'renamed', from: 'moves.txt', additions: 1, deletions: 1 },
  )
  t.same(
    repos[0]!.changes.find(({ path }) => path === 'big.bin'),
    { path: 'big.bin', status: 'added', landed: false },
  )
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: true })
  t.same(
    treeOf(workspace),
    treeOf(copyOf(daemon, 'c-1')),
    'nothing is missing, and no file or empty folder is left over',
  )
  t.same(books(daemon), before, 'index, HEAD and main of each are unchanged')
  for (const [at, path] of ['', ...NESTED].entries()) {
    const branch = inGit(join(workspace, path), 'ls-tree', '-r', '--name-only', '-z', 'agent/c-1')
      .split('\0')
      .filter(name => name !== '')
      .sort()
    t.same(
      Object.entries(treeOf(join(workspace, path)))
        .filter(([name, what]) => what !== 'folder' && (at > 0 || !NESTED.some(inner => name.startsWith(`${inner}/`))))
        .map(([name]) => name)
        .sort(),
      branch,
      'the tree is that of the branch',
    )
  }
  t.equal((await client.call('GET /agents/{id}', { id: 'c-1' })).status, 'landed')
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: true })
})

t.test(
  "if parts of several turns' landed work were removed, a cumulative landing restores what is "
    + 'missing and nothing else',
  async t => {
    const daemon = await started(t)
    const { client, workspace } = daemon
    const land = (span: 'outstanding' | 'cumulative') => client.call('POST /agents/{id}/land', { id: 'c-1', span })
    const at = (path: string) => join(workspace, path)
    await runTurn(
      client,
      'c-1',
      `move moves.txt -> moved.txt\nwrite one/a.txt\n| a\ndelete goes.txt\nmove nested/one/moves.txt -> `
        + `nested/one/moved.txt\nsay done`,
      { isolated: true },
    )
    t.match(await land('outstanding'), { landed: true })
    await runTurn(
      client,
      'c-1',
      `append one/a.txt\n| more\nwrite two.txt\n| two\nedit edit me ü.txt\n| ${EDIT}\nrun rm -r old; chmod 755 `
        + `tool\nwrite second repo/new.txt\n| new\nsay done`,
    )
    t.match(await land('outstanding'), { landed: true })
    const whole = treeOf(workspace)
    const count = async () => (await client.call('GET /agents/{id}', { id: 'c-1' })).landedPresence
    t.equal(await count(), undefined)

    for (const path of ['moved.txt', 'one', 'nested/one/moved.txt', 'second repo/new.txt'])
      rmSync(at(path), { recursive: true })
    for (const [folder, paths] of [
      ['', ['moves.txt', 'goes.txt', 'old', 'tool']],
      ['nested/one', ['moves.txt']],
    ] as const)
      inGit(at(folder), 'checkout', '-q', '--', ...paths)
    writeFileSync(at('edit me ü.txt'), readFileSync(at('edit me ü.txt'), 'utf8').replace('line 30\n', 'mine\n'))
    writeFileSync(at('untracked.txt'), 'mine\n')
    t.match(await count(), { landed: Number, present: Number })
    const { landed, present } = (await count())!
    t.ok(present > 0 && present < landed, `${present} of ${landed} are present`)
    const before = books(daemon)
    const mine = treeOf(workspace)
    t.same(await land('outstanding'), { landed: true }, 'nothing is outstanding')
    t.same(treeOf(workspace), mine, 'nothing was written')
    t.match(await land('cumulative'), { landed: true })
    t.same(treeOf(workspace), {
      ...whole,
      'edit me ü.txt': mine['edit me ü.txt'],
      'untracked.txt': mine['untracked.txt'],
    })
    t.same(books(daemon), before)
    t.equal(await count(), undefined)

    rmSync(at('two.txt'))
    writeFileSync(at('one/a.txt'), 'a person wrote this\n')
    const disputed = treeOf(workspace)
    t.match(await land('cumulative'), {
      landed: false,
      conflicts: exactly({ repo: 'root', paths: exactly({ path: 'one/a.txt', reason: 'workspace' }) }),
    })
    t.same(treeOf(workspace), disputed, "where a person's own words are in the way nothing is written")
  },
)
