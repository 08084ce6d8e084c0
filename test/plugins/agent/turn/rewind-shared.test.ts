import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { TranscriptMessage } from '../../../../plugins/agent/contract.js'
import { until } from '../../../support/browser/browser.js'
import { daemonWith, inGit, type Support } from '../../../support/daemon.js'
import { runTurn } from '../../../support/turns.js'
import { refusal, transcript } from '../support.js'

const rewind = ({ client }: Support, index: number) => client.call('POST /agent/rewind', { conversationId: 's', index })
const rowsOf = async (daemon: Support) => [...(await transcript(daemon, 's')).messages]
const places = (rows: readonly TranscriptMessage[]) => rows.map(({ role, text }) => `${role} ${text.split('\n', 1)[0]}`)

t.test('a conversation in the shared tree goes back to the point before its message', async t => {
  const files = { 'mine.txt': 'mine\n', '.gitignore': 'kept\n' }
  const daemon = await daemonWith(t, ['agent', 'history', 'git'], { files })
  const { client, workspace } = daemon
  const at = (path: string) => join(workspace, path)
  const run = (prompt: string) => runTurn(client, 's', prompt)
  await run('say first\nwrite a.txt\n| one')
  writeFileSync(at('kept'), 'ignored\n')
  writeFileSync(at('by-hand.txt'), 'between\n')
  const frames = await run('say second\nappend a.txt\n| two\nwrite new/deep.txt\n| new\ndelete mine.txt')
  const saved = frames.find(({ kind }) => kind === 'checkpoint')
  const rows = await rowsOf(daemon)
  const point = saved?.kind === 'checkpoint' ? saved.id : 'none'
  t.match(rows[2], { role: 'user', checkpointId: point })
  const head = inGit(workspace, 'rev-parse', 'HEAD')

  await client.call('POST /agent', { conversationId: 'other', prompt: 'ask Which?\n| a: b' })
  await until(async () => (await client.call('GET /agent/cards', {})).cards.length > 0)
  t.match(await refusal(rewind(daemon, 2)), { status: 409, message: /other runs in the shared tree/ })
  t.ok(existsSync(at('new/deep.txt')))
  t.equal((await rowsOf(daemon)).length, rows.length)
  await client.call('POST /agent/stop', { conversationId: 'other' })

  t.match(await rewind(daemon, 2), { snapshot: point, dropped: rows.length - 2 })
  t.equal(readFileSync(at('a.txt'), 'utf8'), 'one\n')
  t.equal(readFileSync(at('mine.txt'), 'utf8'), 'mine\n')
  t.equal(readFileSync(at('by-hand.txt'), 'utf8'), 'between\n', 'it was there before the message')
  t.equal(readFileSync(at('kept'), 'utf8'), 'ignored\n')
  t.notOk(existsSync(at('new/deep.txt')))
  t.equal(inGit(workspace, 'rev-parse', 'HEAD'), head)
  t.same(places(await rowsOf(daemon)), ['user say first', 'assistant first'])
  t.match(await rewind(daemon, 2), { dropped: 0 }, 'the same again drops nothing')

  const { snapshots } = await client.call('GET /history/snapshots', {})
  const holding = await Promise.all(
    snapshots.map(async ({ id }) => (await client.call('GET /history/diff', { id, against: 'now' })).changes),
  )
  t.ok(
    holding.some(changes => changes.some(({ path, status }) => path === 'new/deep.txt' && status === 'deleted')),
    'the state before the rewind is a saved point',
  )
  t.match(await rewind(daemon, 0), { dropped: 2 })
  t.notOk(existsSync(at('a.txt')))
})

t.test('a conversation that goes back takes back no setting, which no turn writes', async t => {
  const daemon = await daemonWith(t, ['agent', 'history', 'git', 'settings'])
  const { client, workspace } = daemon
  await client.call('POST /settings', { changelogRepos: [] })
  await runTurn(client, 's', 'write a.txt\n| one')
  await client.call('POST /settings', { changelogRepos: ['root'] })
  const drive = (await daemon.token('drive')).client
  t.match(await drive.call('POST /agent/rewind', { conversationId: 's', index: 0 }), { dropped: 2 })
  t.notOk(existsSync(join(workspace, 'a.txt')))
  t.same((await client.call('GET /settings')).changelogRepos, ['root'])
  t.match(readFileSync(join(workspace, '.sandbox/config/settings.json'), 'utf8'), /"root"/)
})

t.test('a message in the shared tree is no begin for a fork with its files', async t => {
  const daemon = await daemonWith(t, ['agent', 'history', 'git'])
  const { client } = daemon
  await runTurn(client, 's', 'write a.txt\n| one')
  const forkOf = { conversationId: 's', keep: 0, files: 'then' as const }
  t.match(await refusal(client.call('POST /agent', { conversationId: 'f', prompt: 'say x', forkOf })), { status: 409 })
})
