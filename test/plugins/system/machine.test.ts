import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { figureOf, limitFiles } from '../../../plugins/system/machine/figures.js'
import { Machine } from '../../../plugins/system/machine/machine.js'
import { largest, parsePs, parseStat } from '../../../plugins/system/machine/processes.js'
import { ownProgram } from '../../../sdk/node/programs/run.js'
import { daemonWith } from '../../support/daemon.js'
import { framesOf } from '../../support/turns.js'
import { openEvents } from './stream/events-support.js'
import { refusal } from '../agent/support.js'

t.test('every reader can read it, but no editor token and no caller without a credential', async t => {
  const daemon = await daemonWith(t, ['system'])
  t.equal((await fetch(`${daemon.url}/system/usage`)).status, 401)
  const { client } = await daemon.token('read')
  t.match(await client.call('GET /system/usage', {}), { machine: { recent: { length: 0 } } })
  t.match(await refusal((await daemon.token('editor')).client.call('GET /system/usage', {})), { status: 403 })
  t.match(await daemon.fetch('/system/usage?history=2'), { status: 400 })
})

t.test("the machine's load is reported, with the programs of the sandbox", async t => {
  const daemon = await daemonWith(t, ['system'])
  const secret = spawn('sleep', ['77.5'])
  t.teardown(() => secret.kill())
  const { machine, ...rest } = await daemon.client.call('GET /system/usage', { history: '1' })
  t.same(rest, {}, 'no costs are reported')
  t.ok(machine.cpus >= 1 && machine.cpuPct >= 0 && machine.cpuPct <= 100)
  t.ok(machine.memory.usedBytes > 0 && machine.memory.usedBytes < machine.memory.totalBytes)
  t.same(
    machine.disks.map(({ label }) => label),
    ['workspace', 'state', 'temp'],
  )
  t.ok(machine.disks.every(({ totalBytes, freeBytes }) => freeBytes <= totalBytes))
  t.match(machine.daemon, { pid: process.pid, rssBytes: Number, heapBytes: Number, loopLagMs: Number })
  t.ok(machine.processes.length > 0 && machine.processes.length <= 20)
  t.equal(machine.processes.find(({ pid }) => pid === process.pid)?.origin ?? 'daemon', 'daemon')
  t.notMatch(JSON.stringify(machine), /77\.5/, 'no arguments')
})

t.test(
  'a busy program of a turn is listed with its conversation',
  { skip: process.platform !== 'linux' && 'processes of a wall are seen through /proc' },
  async t => {
    const daemon = await daemonWith(t, ['system', 'agent'])
    await daemon.client.call('POST /agent', { conversationId: 'busy', prompt: 'run echo up; while :; do :; done' })
    await framesOf(daemon.client, 'busy').until(({ kind }) => kind === 'tool_call')
    // Its call is announced before its program starts.
    for (;;) {
      const { machine } = await daemon.client.call('GET /system/usage', {})
      const busy = machine.processes.find(({ conversationId, cpuPct }) => conversationId === 'busy' && cpuPct > 5)
      if (!busy) continue
      t.match(busy, { origin: 'agent', name: String })
      break
    }
    await daemon.client.call('POST /agent/stop', { conversationId: 'busy' })
  },
)

t.test('a process belongs to its nearest reported ancestor; a reused pid is a new process', async t => {
  const seen = (pid: number, parent: number, cpuSeconds: number, began = 'a') => ({
    pid,
    parent,
    name: `p${pid}`,
    cpuSeconds,
    rssBytes: pid,
    began,
  })
  const before = [seen(1, 0, 5), seen(7, 1, 100)]
  const after = [
    seen(1, 0, 6),
    seen(2, 1, 1),
    seen(3, 2, 4),
    seen(4, 3, 0),
    seen(7, 1, 1, 'b'),
    seen(8, 9, 0),
    seen(9, 8, 0),
  ]
  const found = largest(before, after, 2, 2, [{ pid: 3, origin: 'terminal', session: 'web-1' }])
  t.same(
    found.map(({ pid, origin, cpuPct }) => [pid, origin, cpuPct]),
    [
      [3, 'terminal', 200],
      [7, 'other', 50],
      [2, 'daemon', 50],
      [1, 'other', 50],
      [9, 'other', 0],
      [8, 'other', 0],
      [4, 'terminal', 0],
    ],
  )
  t.equal(found.find(({ pid }) => pid === 4)?.session, 'web-1')
  const named = (pid: number, name: string) => ({ ...seen(pid, 2, 0), name })
  t.same(
    largest([], [seen(2, 1, 0), named(5, 'chrome'), named(6, 'git'), { ...named(7, 'chrome'), parent: 1 }], 1, 2, [])
      .map(({ pid, origin }) => [pid, origin])
      .sort(),
    [
      [2, 'daemon'],
      [5, 'browser'],
      [6, 'daemon'],
      [7, 'other'],
    ],
  )
  t.equal(
    largest(
      [],
      Array.from({ length: 50 }, (_, at) => seen(at + 10, 1, 0)),
      1,
      1,
      [],
    ).length,
    20,
  )
})

t.test('process lines are parsed with any program name', async t => {
  const line = '42 (a ) R b) S 7 42 42 0 -1 4194304 1 2 3 4 250 50 0 0 20 0 1 0 12345 1000 10 18446744073709551615 0'
  t.match(parseStat(line), { pid: 42, parent: 7, name: 'a ) R b', cpuSeconds: 3, rssBytes: 40960, began: '12345' })
  t.equal(parseStat(''), undefined)
  t.match(parsePs('  311     1   5120   1:02.50 Sat Nov 21 10:00:00 2026 /usr/sbin/a program'), {
    pid: 311,
    parent: 1,
    rssBytes: 5 << 20,
    cpuSeconds: 62.5,
    name: 'a program',
  })
  t.equal(parsePs('garbage'), undefined)
})

t.test('memory limits are read from the control group of the process and its parents, in both versions', async t => {
  t.same(limitFiles('0::/a/b\n'), [
    '/sys/fs/cgroup/a/b/memory.max',
    '/sys/fs/cgroup/a/memory.max',
    '/sys/fs/cgroup/memory.max',
  ])
  t.same(limitFiles('9:cpu,cpuacct:/x\n4:memory:/y\n'), [
    '/sys/fs/cgroup/memory/y/memory.limit_in_bytes',
    '/sys/fs/cgroup/memory/memory.limit_in_bytes',
  ])
  t.equal(figureOf('MemTotal:       1024 kB\nMemAvailable:    512 kB\n', 'MemAvailable'), 524_288)
  t.equal(figureOf('', 'MemTotal'), undefined)
})

/** A machine whose figures a test sets. */
const scripted = () => {
  const now = { busy: 0, all: 0, used: 50, free: 50 }
  const crossed: string[] = []
  const machine = new Machine({
    places: [],
    owned: async () => [],
    crossed: () => crossed.push(`${now.used}/${100 - now.free}`),
    figures: {
      cpuTimes: () => ({ busy: now.busy, all: now.all }),
      memoryUse: async () => ({ totalBytes: 1000, limitBytes: 100, usedBytes: now.used }),
      diskUse: async () => [{ label: 'temp', totalBytes: 100, freeBytes: now.free }],
    },
  })
  return { now, crossed, machine }
}

t.test('crossing a warning line is reported once, up and down; no crossing is not', async t => {
  const { now, crossed, machine } = scripted()
  const minute = async (used: number, free: number, busy: number) => {
    Object.assign(now, { used, free, busy: now.busy + busy, all: now.all + 100 })
    await machine.sample(0)
    return crossed.splice(0).length
  }
  t.equal(await minute(50, 50, 10), 0)
  t.equal(await minute(79, 50, 10), 0)
  t.equal(await minute(80, 50, 10), 1)
  t.equal(await minute(89, 50, 10), 0)
  t.equal(await minute(95, 50, 10), 1)
  t.equal(await minute(95, 9, 10), 1, 'a disk')
  t.equal(await minute(95, 9, 99), 1, 'the processors')
  t.equal(await minute(10, 50, 10), 1, 'back below')
})

t.test('the history covers an hour, with a point per minute', async t => {
  const { now, machine } = scripted()
  for (let at = 1; at <= 70; at++) {
    now.busy += 25
    now.all += 100
    await machine.sample(at)
  }
  const { recent } = await machine.use(true)
  t.same([recent.length, recent[0], recent.at(-1)?.at], [60, { at: 11, cpuPct: 25, usedBytes: 50 }, 70])
  t.same((await machine.use(false)).recent, [])
})

t.test('a crossing is published by the domain machine', async t => {
  const daemon = await daemonWith(t, ['system'])
  const events = await openEvents(t, daemon)
  t.equal((await events.until('hello')).versions.machine, 0)
})

t.test('a program that ends during a reading causes no error', async t => {
  const daemon = await daemonWith(t, ['system'])
  const looks = Promise.all(Array.from({ length: 3 }, () => daemon.client.call('GET /system/usage', {})))
  for (let at = 0; at < 20; at++) await once(spawn('true'), 'exit')
  t.equal((await looks).length, 3)
})

const hasTmux = (await ownProgram('tmux')) !== undefined
t.test(
  'a program in a terminal is listed with the terminal',
  { skip: !hasTmux && !process.env.CI && 'tmux is not installed' },
  async t => {
    const daemon = await daemonWith(t, ['system'])
    // It outlives the daemon.
    t.teardown(() =>
      spawnSync('tmux', ['-S', 'tmux', 'kill-server'], { cwd: join(daemon.data, 'system', 'terminals') }),
    )
    const { name } = await daemon.client.call('POST /system/terminals', { command: 'while :; do :; done' })
    for (;;) {
      const { machine } = await daemon.client.call('GET /system/usage', {})
      if (machine.processes.some(({ origin, cpuPct }) => origin === 'terminal' && cpuPct > 5)) break
    }
    await daemon.client.call('DELETE /system/terminals/{name}', { name })
    t.pass('it was found')
  },
)
