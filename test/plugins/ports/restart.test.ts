import { join } from 'node:path'
import t from 'tap'
import { Forwards, type EndReason } from '../../../plugins/ports/forwards/forwards.js'
import { PreviewStore } from '../../../plugins/ports/preview/store.js'
import { hostLabel, previewUrl } from '../../../plugins/ports/preview/names.js'
import { outsideLocation } from '../../../plugins/ports/preview/request-head.js'
import { LsofMachine, parseLsof, parseProcesses } from '../../../plugins/ports/scan/lsof.js'
import type { ScannedPort } from '../../../plugins/ports/scan/scan.js'
import { containerTitle, programTitle } from '../../../plugins/ports/scan/titles.js'
import { attribute } from '../../../plugins/ports/scan/attribution.js'
import { ownProgram } from '../../../sdk/node/programs/run.js'
import { folderOf, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { shownServers } from '../../support/servers/shown-servers.js'
import { until } from '../workspace/projects-support.js'
import { show } from './support.js'

t.test('after a kill a forward is back where its program still runs, and nowhere else', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  const [kept, other] = [shownServers(t, where.workspace), shownServers(t, where.workspace)]
  const first = await spawnDaemon(t, where)
  const stays = await kept.ask({ listen: '127.0.0.1', page: 'stays' })
  const again = await kept.ask({ listen: '127.0.0.1', page: 'again' })
  const forward = async (port: number) => (await first.client.call('POST /ports/forward', { port })).previewUrl
  const [staysAt, againAt] = [await forward(stays), await forward(again)]
  const old = Number(new URL(first.url).port)
  t.equal((await show(staysAt)).text, 'stays')
  await first.kill9()
  await t.rejects(show(staysAt), 'nothing of it listens')
  await kept.ask({ close: again })
  await other.ask({ listen: '127.0.0.1', port: again, page: 'started by hand' })
  // A development server takes the port that the daemon had.
  await other.ask({ listen: '127.0.0.1', port: old, page: 'took the port of the daemon' })

  const second = await spawnDaemon(t, where)
  // Answered when the start is complete.
  const rows = (await second.client.call('GET /ports')).ports
  t.equal((await show(staysAt)).text, 'stays', 'at the same address')
  t.match(await show(againAt), { status: 502, text: /Nothing is forwarded here/ })
  t.match(
    rows.find(({ port }) => port === stays),
    { forwarded: true, previewUrl: staysAt },
  )
  t.match(
    rows.find(({ port }) => port === again),
    { forwarded: false },
  )
  const { previewUrl } = await second.client.call('POST /ports/forward', { port: old })
  t.equal((await show(previewUrl)).text, 'took the port of the daemon')
  t.equal((await show(previewUrl, { path: '/info' })).text, 'took the port of the daemon', 'never the daemon')
  const { events } = await second.client.call('GET /activity', {})
  t.match(
    events.filter(({ type }) => type === 'port.unforwardedBySandbox'),
    exactly({ extra: { port: again, reason: 'the program ended while the sandbox was stopped' } }),
  )
})

/** Forwards over a scan and a clock of the test. */
const world = async () => {
  const state = { ports: [] as ScannedPort[], now: 1_000, ended: [] as EndReason[], document: undefined as unknown }
  const store = new PreviewStore({
    read: async <T>() => state.document as T | undefined,
    write: async (_name, value) => void (state.document = value),
  })
  await store.load()
  const forwards = new Forwards({
    store,
    scan: async () => state.ports,
    boot: async () => 'boot',
    probe: async () => false,
    changed: () => {},
    ended: (_slot, reason) => void state.ended.push(reason),
    cut: () => {},
    now: () => state.now,
  })
  return { state, store, forwards }
}
const listening = (port: number, pid: number, inode: string, starter?: string): ScannedPort => {
  const holder = { pid, parent: 1, began: `b${pid}`, args: ['node'] }
  return {
    ...{ port, host: '127.0.0.1', forwardable: true, own: false, kind: 'workspace', origin: 'terminal' },
    ...{ title: 'server', purpose: 'Runs.', holder, ...(starter !== undefined && { starter }) },
    takers: [{ inode, holders: [holder], ...(starter !== undefined && { starter }) }],
  }
}

t.test('a forward waits 24 hours for what the same terminal starts, and for nothing else', async t => {
  const { state, forwards } = await world()
  const place = { port: 3000 }
  state.ports = [listening(3000, 7, '70', 'web-1')]
  const { slot } = await forwards.forward(place)
  state.ports = []
  await forwards.settle()
  state.now += 24 * 3_600_000 - 1
  await forwards.expire()
  t.ok(forwards.at(place), 'a millisecond before')
  state.ports = [listening(3000, 8, '80', 'web-1')]
  await forwards.settle()
  t.match(forwards.at(place), { name: slot.name, forward: { pid: 8, inodes: exactly('80'), goneAt: undefined } })
  state.ports = []
  await forwards.settle()
  state.now += 24 * 3_600_000
  await forwards.expire()
  t.notOk(forwards.at(place))
  state.ports = [listening(3000, 8, '80', 'web-1')]
  t.equal((await forwards.forward(place)).slot.name, slot.name, 'its address stays its own')
  state.ports = [listening(3000, 9, '90', 'web-2')]
  await forwards.settle()
  t.notOk(forwards.at(place))
  t.same(state.ended, ['nothing listened for 24 hours', 'another program took the port'])
})

t.test('a socket of another program beside that of the forwarded one ends the forward', async t => {
  const { state, forwards } = await world()
  const [one, other] = [listening(3000, 7, '70'), listening(3000, 8, '80')]
  state.ports = [one]
  await forwards.forward({ port: 3000 })
  state.ports = [{ ...one, takers: [...one.takers, ...other.takers] }]
  await forwards.settle()
  t.same(state.ended, ['another program took the port'])
})

const [lsof, ps] = [await ownProgram('lsof'), await ownProgram('ps')]
const skip = lsof && ps ? false : 'lsof or ps is missing'

t.test('where there are no socket tables, lsof and ps show the same servers', { skip }, async t => {
  const folder = folderOf(t)
  const servers = shownServers(t, folder)
  const [v4, v6, all] = [
    await servers.ask({ listen: '127.0.0.1' }),
    await servers.ask({ listen: '::1' }),
    await servers.ask({ listen: '0.0.0.0' }),
  ]
  const machine = new LsofMachine(lsof!, ps!)
  const found = await machine.family(servers.pid)
  const addresses = new Map(found.map(({ port, address }) => [port, address]))
  t.strictSame(
    [v4, v6, all].map(port => addresses.get(port)),
    ['127.0.0.1', '::1', '0.0.0.0'],
  )
  const { inode } = found.find(({ port }) => port === v4)!
  const { holders, ancestry } = await machine.holders(new Set([inode]))
  t.match(holders.get(inode), exactly({ pid: servers.pid, cwd: folder, began: await machine.began(servers.pid) }))
  t.ok(ancestry(servers.pid).includes(process.pid))
  t.equal(await machine.began(2 ** 22 + 1), undefined)
  t.same(parseLsof('p12\nf3\ntIPv6\nd0x1\nn*:80\nf4\ntIPv4\nd0x2\nn127.0.0.1:81\n'), [
    { pid: 12, port: 80, address: '::', inode: '0x1' },
    { pid: 12, port: 81, address: '127.0.0.1', inode: '0x2' },
  ])
  t.match(parseProcesses('  12     1 Wed Nov 25 15:00:00 2026 node a b\n').get(12), {
    parent: 1,
    args: exactly('node', 'a', 'b'),
  })
})

t.test('programs have the names that people know, and proxies of containers are recognized', async t => {
  const proxy = ['/usr/bin/docker-proxy', '-host-port', '8080', '-container-port', '80']
  t.equal(programTitle(['node', '/w/node_modules/.bin/vite', '--port', '1']), 'Vite dev server')
  t.equal(programTitle(['python3', '-m', 'http.server']), 'Python file server')
  t.equal(programTitle(['/usr/bin/python3.12', 'serve.py']), 'Python program serve.py')
  t.equal(programTitle(['/usr/lib/postgresql/16/bin/postgres', '-D', '/x']), 'PostgreSQL')
  t.equal(programTitle([]), 'unknown program')
  t.equal(containerTitle(proxy), 'Container, port 80')
  const known = {
    ...{ workspace: '/w', data: '/d', daemon: 5, sessions: [{ name: 'panel-web', pid: 9 }] },
    owned: [
      { pid: 11, origin: 'extension' as const, session: 'ada.web/web' },
      { pid: 12, origin: 'agent' as const, conversationId: 'c' },
    ],
  }
  const of = (pid: number, args: string[], cwd: string, ancestry: number[]) =>
    attribute(known, { pid, parent: 1, began: '1', args, cwd }, ancestry, undefined)
  t.match(of(20, proxy, '/', [20, 1]), { origin: 'container', kind: 'workspace', title: 'Container, port 80' })
  t.match(of(20, ['tmux', '-S', '/d/s'], '/', [20, 1]), { origin: 'sandbox', kind: 'system' })
  t.match(of(20, ['tmux', '-S', '/d/s'], '/w/a', [20, 5, 1]), { origin: 'unknown', kind: 'workspace', cwd: 'a' })
  t.match(of(20, ['node'], '/w', [20, 9, 5]), { origin: 'panel', session: 'panel-web', starter: 'panel-web' })
  t.match(of(20, ['node'], '/x', [20, 11, 5]), { origin: 'extension', session: 'ada.web/web' })
  t.match(of(20, ['node'], '/w', [20, 12, 5]), { origin: 'agent', starter: 'conversation c' })
  t.match(of(20, ['node'], '/x', [20, 5]), { origin: 'sandbox', kind: 'system' })
  t.match(of(20, ['node'], '/x', [20, 1]), { origin: 'unknown', kind: 'system', cwd: '/x' })
})

t.test('names fit into one label of a host name, below localhost and in a zone', async t => {
  const random = 'abcdefghijklmnop'
  const [near, far] = [{ sandboxId: 'f'.repeat(32) }, { sandboxId: 'f'.repeat(32), zone: 'https://p.example.org' }]
  const long = `preview-${'Shop_Äpp/'.repeat(9)}`
  for (const zone of [near, far]) t.match(hostLabel(long, random, zone), /^preview-[a-z0-9-]{1,55}$/)
  t.ok([near, far].every(zone => hostLabel(long, random, zone).length <= 63))
  t.equal(previewUrl(hostLabel('port', random, near), near, 8788), `http://port-${random}.localhost:8788`)
  t.equal(
    previewUrl(hostLabel('port', random, far), far, 8788),
    `https://port-${random}-${'f'.repeat(32)}.p.example.org`,
  )
  t.equal(outsideLocation('http://localhost:3000/a?b#c', 3000, 'https://x.p.org'), 'https://x.p.org/a?b#c')
  t.equal(outsideLocation('http://localhost:3001/a', 3000, 'https://x.p.org'), 'http://localhost:3001/a')
  t.equal(outsideLocation('/a', 3000, 'https://x.p.org'), '/a')
})

t.test('the port of the preview listener is the one after the daemon, or the one that is configured', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  const servers = shownServers(t, where.workspace)
  const port = await servers.ask({ listen: '127.0.0.1', page: 'shown' })
  const taken = await servers.ask({ listen: '127.0.0.1' })
  const busy = await spawnDaemon(t, { ...where, args: ['--preview-port', String(taken)] })
  const refusal = await busy.client.call('POST /ports/forward', { port }).catch(error => error as Error)
  t.match(refusal, { reason: 'dependency', message: /--preview-port/ })
  t.same(
    (await busy.client.call('GET /ports')).ports.filter(({ forwarded }) => forwarded),
    [],
  )
  await busy.terminate()
  const next = await spawnDaemon(t, where)
  const { previewUrl } = await next.client.call('POST /ports/forward', { port })
  const own = Number(new URL(next.url).port)
  await until('it is served', async () => (await show(previewUrl)).text === 'shown')
  // Another program may have the port after the daemon's.
  t.ok(Number(new URL(previewUrl).port) !== own)
})
