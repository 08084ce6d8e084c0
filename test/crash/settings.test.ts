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

t.test('a kill in the check of a push and in a round of a turn loses neither', async t => {
  const where = whereFor(t, folderOf(t))
  const server = await gitServer(t, folderOf(t))
  const at = join(where.workspace, 'app')
  repoAt(at, { f: '1\n' })
  const bare = join(server.folder, 'app.git')
  bareCopy(at, bare)
  const repo = 'app'
  const daemon = await spawnDaemon(t, where)
  const { once } = daemon
  const save = (client: typeof once, ...rules: Rule[]) => client.call('POST /settings/patch', { set: { rules } })
  await once.call('POST /git/{repo}/remotes', { repo, name: 'origin', url: `${server.url}/app.git` })
  put(at, { f: '2\n' })
  const mine = commitAll(at, 'second')
  await save(once, check('exit 1'))
  t.match(await once.call('POST /git/{repo}/push', { repo }), { ok: false, code: 'rejected' })
  const text = 'append n.txt\n| one\nwait 700\nappend n.txt\n| two\nsay over'
  const more: Rule = { id: 'more', label: 'More', moment: 'turn.ending', action: { kind: 'instruct', text } }
  await save(once, check('touch began; sleep 765432'), more)
  await once.call('POST /settings/patch', { set: { autoResumeOnRestart: true } })
  const pushing = once.call('POST /git/{repo}/push', { repo }).catch(() => {})
  await until(() => existsSync(join(at, 'began')))
  const { run } = await once.call('POST /agent', { conversationId: 'c', prompt: 'append n.txt\n| first' })
  const notes = join(where.workspace, 'n.txt')
  const lines = () => (existsSync(notes) ? readFileSync(notes, 'utf8').split('\n') : [])
  await until(() => lines().includes('one'))
  await daemon.kill9()
  await pushing

  const { client } = await spawnDaemon(t, where)
  await t.test('the push sent nothing, and no check is left behind', async t => {
    t.not(inGit(bare, 'rev-parse', 'main').trim(), mine)
    const left = ({ name, running }: { name: string; running: boolean }) => name === 'job-checks' && running
    await until(async () => !(await client.call('GET /system/terminals')).sessions.some(left))
  })
  await t.test('the turn goes on in its round', async t => {
    const frames = (await framesOf(client, 'c', { run }).all()).map(({ event }) => event)
    t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
    t.same(lines(), ['first', 'one', 'two', ''])
    t.equal(frames.filter(({ kind }) => kind === 'steer').length, 1)
  })
  await t.test('firings are kept, and the push arrives', async t => {
    t.match(
      await client.call('GET /settings/rule-firings'),
      exactly({ id: 'more', count: 1 }, { id: 'check', count: 1, outcome: 'blocked' }),
    )
    await save(client, check('true'))
    t.match(await client.call('POST /git/{repo}/push', { repo }), { ok: true })
    t.equal(inGit(bare, 'rev-parse', 'main').trim(), mine)
  })
})
