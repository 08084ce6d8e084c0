import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { until } from '../../support/browser/browser.js'
import { folderOf, spawnDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { startAccountServer } from '../../support/servers/account-server.js'
import { runTurn } from '../../support/turns.js'
import { whereIn } from '../failpoints/failpoints.js'

/** Whether a process still is a translator; one that has ended may wait to be reaped. */
const isTranslator = (pid: number): boolean => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('translator-child')
  } catch {
    return false
  }
}

/** The translators that a process started. */
const translatorsOf = (daemon: number): number[] =>
  readdirSync('/proc')
    .map(Number)
    .filter(pid => {
      try {
        const parent = /^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
        return Number(parent) === daemon && isTranslator(pid)
      } catch {
        return false
      }
    })

t.test('a killed daemon leaves no translator, and the next one serves its accounts', async t => {
  const server = await startAccountServer(t)
  const definitions = join(folderOf(t), 'definitions')
  mkdirSync(definitions)
  writeFileSync(join(definitions, 'acme.json'), JSON.stringify(server.definition('acme', { serving: 'routed' })))
  const where = whereIn(t, {}, { models: { providers: definitions } })
  const first = await spawnDaemon(t, where)
  const asked = { provider: 'acme' } as const
  const { url, state } = await first.client.call('POST /translator/{provider}/connect', asked)
  const redirectUrl = await server.approve(url, 'ada@example.org')
  await first.client.call('POST /translator/{provider}/complete', { ...asked, redirectUrl, state })
  await until(async () => (await first.client.call('GET /translator')).state === 'running')
  const before = translatorsOf(first.pid)
  t.equal(before.length, 1)
  t.teardown(() => before.forEach(pid => isTranslator(pid) && process.kill(pid, 'SIGKILL')))
  // One that is stopped does not notice that its daemon is gone.
  process.kill(before[0]!, 'SIGSTOP')
  await first.kill9()
  t.ok(isTranslator(before[0]!))

  const second = await spawnDaemon(t, where)
  t.match((await second.client.call('GET /translator/accounts')).acme, exactly({ label: String }))
  await until(async () => (await second.client.call('GET /translator')).state === 'running')
  t.notOk(isTranslator(before[0]!), 'the process of the last daemon was ended')
  const frames = await runTurn(second.client, 'one', 'hello', { agent: 'acme' })
  t.match(
    frames.filter(({ kind }) => kind === 'delta' || kind === 'error'),
    exactly({ text: 'Hello.' }),
  )

  const [running] = translatorsOf(second.pid)
  await second.kill9()
  await until(() => !isTranslator(running!))
  const third = await spawnDaemon(t, where)
  t.match((await third.client.call('GET /translator/accounts')).acme, exactly({ label: String }))
})
