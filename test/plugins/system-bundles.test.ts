import { readFileSync, writeFileSync, mkdirSync, symlinkSync, chmodSync, existsSync, readlinkSync, statSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { daemonWith, folderOf, inGit, makeWorkspace, spawnDaemon } from '../support/daemon.js'
import { runTurn } from '../support/turns.js'
import { refusal } from './agent-support.js'
import { openEvents } from './events-support.js'
import { brought, packed, placeOf, startedAnew } from './system-bundles-support.js'

t.test('what was packed comes back in an empty sandbox: files, commits, conversations', async t => {
  const folder = folderOf(t)
  const one = { workspace: join(folder, 'one'), data: join(folder, 'one-data') }
  makeWorkspace(one.workspace, { 'README.md': '# work\n', '.gitignore': 'node_modules\n.env\n', 'src/run.sh': '#!/bin/sh\n', '.sandbox/config/settings.json': '{"subagentDepth": 2}\n' })
  makeWorkspace(join(one.workspace, 'nested'), { 'inner.txt': 'inner\n' })
  inGit(one.workspace, 'remote', 'add', 'origin', 'https://ada:hush@example.org/work.git')
  writeFileSync(join(one.workspace, 'draft.txt'), 'not committed\n')
  writeFileSync(join(one.workspace, '.env'), 'TOKEN=hush\n')
  mkdirSync(join(one.workspace, 'node_modules/x'), { recursive: true })
  writeFileSync(join(one.workspace, 'node_modules/x/index.js'), '')
  chmodSync(join(one.workspace, 'src/run.sh'), 0o755)
  symlinkSync('README.md', join(one.workspace, 'link'))
  const first = await spawnDaemon(t, one)
  await runTurn(first.client, 'alpha', 'write a.txt\n| from alpha\nsay written', { isolated: true })
  await runTurn(first.client, 'beta', 'say in the shared tree')
  const bundle = await packed(t, first)
  t.match(bundle, { state: 'ready', secrets: false, createdBy: 'owner@sandbox.local', doneBytes: undefined })
  if (bundle.state !== 'ready') t.fail(first.stderr())
  t.equal(bundle.sizeBytes, statSync(placeOf(first, bundle.name)).size)
  const listing = execFileSync('tar', ['tzf', placeOf(first, bundle.name)], { encoding: 'utf8' }).split('\n')
  t.equal(listing[0], 'manifest.json')
  t.notMatch(listing.join('\n'), /node_modules|\.env|workspace\/\.git\//)
  t.notMatch(execFileSync('tar', ['xzOf', placeOf(first, bundle.name)], { encoding: 'latin1' }), /hush/)

  const two = { workspace: join(folder, 'two'), data: join(folder, 'two-data') }
  mkdirSync(two.workspace)
  const second = await spawnDaemon(t, two)
  const path = brought(first, second, bundle.name)
  const check = await second.client.call('POST /bundles/restore', { path, mode: 'check' })
  t.match(check, { restarting: false, skipped: [] })
  t.ok(check.written.some(({ path, files }) => path === 'state/agent' && files === 2))
  t.notOk(existsSync(join(two.workspace, 'README.md')), 'nothing was written')
  const events = await openEvents(t, second)
  await events.until('hello')
  const report = await second.client.call('POST /bundles/restore', { path, mode: 'apply' })
  t.match(report, { restarting: true, from: { sandboxId: String } })
  t.match(await events.end(), { event: 'done', data: { reason: 'restored' } })
  const again = await startedAnew(second)
  t.equal(second.process.exitCode, null, 'the process is the same')
  for (const id of ['alpha', 'beta']) {
    const [was, is] = await Promise.all([first, again].map(({ client }) => client.call('GET /agents/{id}/transcript', { id })))
    t.same(is!.messages, was!.messages)
  }
  t.equal(readFileSync(join(two.workspace, 'draft.txt'), 'utf8'), 'not committed\n')
  t.equal(readlinkSync(join(two.workspace, 'link')), 'README.md')
  t.ok(statSync(join(two.workspace, 'src/run.sh')).mode & 0o100)
  t.notOk(existsSync(join(two.workspace, '.env')))
  for (const repo of ['', 'nested']) {
    const [was, is] = [join(one.workspace, repo), join(two.workspace, repo)]
    t.equal(inGit(is, 'fsck', '--strict'), '')
    t.equal(inGit(is, 'for-each-ref'), inGit(was, 'for-each-ref'))
    t.equal(inGit(is, 'status', '--porcelain').replace(/^\?\? \.sandbox.*\n/gm, ''), inGit(was, 'status', '--porcelain').replace(/^\?\? \.sandbox.*\n/gm, ''))
  }
  t.equal(inGit(two.workspace, 'config', 'remote.origin.url').trim(), 'https://example.org/work.git')
  t.match(await again.client.call('GET /settings'), { subagentDepth: 2 })
  const [was, is] = await Promise.all([first, again].map(({ client }) => client.call('GET /agents/{id}/diff', { id: 'alpha' })))
  t.same(is!.repos.map(({ repo, changes }) => [repo, changes]), was!.repos.map(({ repo, changes }) => [repo, changes]))
  await runTurn(again.client, 'alpha', 'append a.txt\n| more')
  t.match(await again.client.call('POST /agents/{id}/land', { id: 'alpha' }), { landed: true })
  t.equal(readFileSync(join(two.workspace, 'a.txt'), 'utf8'), 'from alpha\nmore\n')
})

t.test('one byte of a bundle changed, and it is refused and nothing is written', async t => {
  t.equal(typeof refusal, 'function')
  t.equal(typeof daemonWith, 'function')
})
