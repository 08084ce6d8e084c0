import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Rule } from '../../plugins/settings/contract.js'
import { commitAll, put, repoAt } from '../plugins/git/support.js'
import { until } from '../support/browser/browser.js'
import { endTerminals, folderOf, inGit, makeWorkspace, spawnDaemon } from '../support/daemon.js'
import { exactly } from '../support/lists.js'
import { bareCopy, gitServer } from '../support/servers/git-server.js'
import { framesOf } from '../support/turns.js'

const whereFor = (t: { teardown(work: () => void): void }, folder: string) => {
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  t.teardown(() => endTerminals(where.data))
  return where
}
const check = (command: string): Rule => ({
  ...{ id: 'check', label: 'Check', moment: 'push.starting', action: { kind: 'command', command } },
})

t.test('a push whose check a kill interrupts sends nothing, and leaves no check behind', async t => {
  const where = whereFor(t, folderOf(t))
  const server = await gitServer(t, folderOf(t))
  const at = join(where.workspace, 'app')
  repoAt(at, { f: '1\n' })
  const bare = join(server.folder, 'app.git')
  bareCopy(at, bare)
  const repo = 'app'
  const daemon = await spawnDaemon(t, where)
  const { once } = daemon
  await once.call('POST /git/{repo}/remotes', { repo, name: 'origin', url: `${server.url}/app.git` })
  put(at, { f: '2\n' })
  const mine = commitAll(at, 'second')
  await once.call('POST /settings/patch', { set: { rules: [check('exit 1')] } })
  t.match(await once.call('POST /git/{repo}/push', { repo }), { ok: false, code: 'rejected' })
  await once.call('POST /settings/patch', { set: { rules: [check('touch began; sleep 765432')] } })
  const pushing = once.call('POST /git/{repo}/push', { repo }).catch(() => {})
  await until(() => existsSync(join(at, 'began')))
  await daemon.kill9()
  await pushing
  const again = await spawnDaemon(t, where)
  const { client } = again
  t.not(inGit(bare, 'rev-parse', 'main').trim(), mine)
  t.match(await client.call('GET /settings/rule-firings'), exactly({ id: 'check', count: 1, outcome: 'blocked' }))
  const left = async () =>
    (await client.call('GET /system/terminals')).sessions.some(({ name, running }) => name === 'job-checks' && running)
  await until(async () => !(await left()))
  await client.call('POST /settings/patch', { set: { rules: [check('true')] } })
  t.match(await client.call('POST /git/{repo}/push', { repo }), { ok: true })
  t.equal(inGit(bare, 'rev-parse', 'main').trim(), mine)
})

t.test('a turn that is killed in a round of a rule goes on in that round', async t => {
  const where = whereFor(t, folderOf(t))
  const daemon = await spawnDaemon(t, where)
  const text = 'append n.txt\n| one\nwait 700\nappend n.txt\n| two\nsay over'
  const rule: Rule = { id: 'more', label: 'More', moment: 'turn.ending', action: { kind: 'instruct', text } }
  await daemon.once.call('POST /settings/patch', { set: { rules: [rule], autoResumeOnRestart: true } })
  const { run } = await daemon.once.call('POST /agent', { conversationId: 'c', prompt: 'append n.txt\n| first' })
  const lines = () =>
    existsSync(join(where.workspace, 'n.txt')) ? readFileSync(join(where.workspace, 'n.txt'), 'utf8').split('\n') : []
  await until(() => lines().includes('one'))
  await daemon.kill9()
  const { client } = await spawnDaemon(t, where)
  const frames = (await framesOf(client, 'c', { run }).all()).map(({ event }) => event)
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  t.same(lines(), ['first', 'one', 'two', ''])
  t.equal(frames.filter(({ kind }) => kind === 'steer').length, 1)
  t.match(await client.call('GET /settings/rule-firings'), exactly({ id: 'more', count: 1 }))
})
