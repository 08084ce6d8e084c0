import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { act, freshOf, PAGES, portsOf, processesWith, siteOf, until, withChromium } from '../support/browser/browser.js'
import { daemonWith, folderOf, makeWorkspace, spawnDaemon } from '../support/daemon.js'
import { exactly } from '../support/lists.js'

const quiet = (read: () => string): string => {
  try {
    return read()
  } catch {
    return ''
  }
}
const realOf = (pid: number, name: string): string => quiet(() => readlinkSync(`/proc/${pid}/${name}`))
const commandOf = (pid: number): string => quiet(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
const statusOf = (pid: number): string => quiet(() => readFileSync(`/proc/${pid}/status`, 'utf8'))

t.test('a browser runs behind the wall, if possible in its own sandbox, and opens no port', withChromium(), async t => {
  const daemon = await daemonWith(t, ['system'])
  const site = await siteOf(t, PAGES)
  await act(daemon, 'open', { url: site.url })
  const pids = processesWith(freshOf(daemon))
  t.same(portsOf(pids), [], 'it is controlled through pipes')
  const inner = pids.filter(pid => realOf(pid, 'ns/pid') !== realOf(process.pid, 'ns/pid'))
  t.ok(inner.length > 2, 'its processes have their own namespace')
  const outside = (path: string) => inner.filter(pid => existsSync(`/proc/${pid}/root${path}`))
  t.same(outside(join(daemon.data, 'machine.key')), [], 'the data folder is hidden')
  t.same(outside(join(daemon.workspace, 'README.md')), [], 'the workspace is hidden')
  const renderers = processesWith('--type=renderer').filter(pid => pids.includes(pid) || inner.includes(pid))
  if (pids.some(pid => /--no-sandbox/.test(commandOf(pid))))
    t.comment('programs of this machine cannot create namespaces: chromium runs without its own sandbox')
  else
    t.ok(
      renderers.every(pid => /^Seccomp:\s+2$/m.test(statusOf(pid))),
      'its pages run in its own sandbox too',
    )
})

t.test('a crashed browser is listed as not running, and leaves nothing behind', withChromium(), async t => {
  const daemon = await daemonWith(t, ['system'])
  const site = await siteOf(t, PAGES)
  await act(daemon, 'open', { url: site.url })
  const [main] = processesWith(freshOf(daemon)).filter(
    pid => realOf(pid, 'ns/pid') !== realOf(process.pid, 'ns/pid') && !/--type=/.test(commandOf(pid)),
  )
  const waiting = act(daemon, 'goto', { url: 'http://127.0.0.1:9/' }).catch(() => {})
  process.kill(main!, 'SIGKILL')
  await waiting
  await until(() => processesWith(freshOf(daemon)).length === 0 && readdirSync(freshOf(daemon)).length === 0)
  t.match(
    (await daemon.client.call('GET /system/browsers')).sessions,
    exactly({ running: false, pages: exactly({ id: 'p1' }) }),
  )
  await t.rejects(act(daemon, 'capture'), { reason: 'conflict', message: /not running/ })
  t.equal(statusOf(main!), '', 'no zombie')
})

t.test('a killed daemon leaves no browser running, and the next start removes its folder', withChromium(), async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  const daemon = await spawnDaemon(t, where)
  const site = await siteOf(t, PAGES)
  await act(daemon, 'open', { url: site.url })
  t.ok(processesWith(freshOf(where)).length > 0)
  await daemon.kill9()
  await until(() => processesWith(freshOf(where)).length === 0)
  t.equal(readdirSync(freshOf(where)).length, 1, 'its folder remains')
  const next = await spawnDaemon(t, where)
  t.same((await next.client.call('GET /system/browsers')).sessions, [])
  t.notOk(existsSync(freshOf(where)), 'the next start removes it')
  await act(next, 'open', { url: site.url })
  await next.terminate()
  t.same(processesWith(freshOf(where)), [], 'a daemon that stops ends its browsers')
})
