import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createLog } from '../../../kernel/logs/log.js'
import { groupLog } from '../../../sdk/node/logs/line.js'
import { folderOf, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { runTurn } from '../../support/turns.js'
import { inTime } from '../../support/in-time.js'

const SECRET = `sbs_${'a'.repeat(22)}.${'b'.repeat(43)}`

t.test('a line has time, level, group and message, and is stored unchanged', t => {
  const [written, kept]: [string[], string[]] = [[], []]
  const log = createLog(
    true,
    line => written.push(line),
    line => kept.push(line),
  )
  groupLog(log, 'agents').warn('something', { id: 'c' })
  log.error({ err: new Error('broken') }, 'failed')
  t.same(written, kept)
  t.match(
    written.map(line => JSON.parse(line)),
    exactly(
      { level: 'warn', at: Number, pid: process.pid, group: 'agents', id: 'c', message: 'something' },
      { level: 'error', at: Number, message: 'failed', err: { message: 'broken', stack: String } },
    ),
  )
  t.end()
})

t.test('a person gets warnings and errors as plain lines, and everything is stored', t => {
  const [written, kept]: [string[], string[]] = [[], []]
  const log = createLog(
    false,
    line => written.push(line),
    line => kept.push(line),
  )
  groupLog(log, 'agents').info('quiet')
  groupLog(log, 'agents').error('loud', { error: 'why' })
  t.same(written.filter(Boolean), ['error: agents: loud\n  why\n'])
  t.equal(kept.length, 2)
  t.end()
})

t.test('no line contains a credential, a forged line or a control sequence', t => {
  for (const json of [true, false]) {
    const lines: string[] = []
    const log = createLog(json, line => lines.push(line))
    log.warn(
      {
        path: `/x?ticket=${SECRET}`,
        authorization: `Bearer ${SECRET}`,
        error: `a\n{"level":"error"}\u001b[2J\u202e${SECRET}`,
      },
      `b\nerror: forged\u001b]0;t\u0007\u0085${SECRET}`,
    )
    t.equal(lines.length, 1)
    t.notMatch(lines[0], 'bbbb')
    t.notMatch(lines[0], /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
    if (json) t.equal(lines[0]!.indexOf('\n'), lines[0]!.length - 1)
    else t.notMatch(lines[0], /^(error|\{)/m)
  }
  t.end()
})

t.test("an error of a group reaches followers within a second, and is in the group's log and the daemon's", async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace, { 'README.md': '# work\n', '.sandbox/config/settings.json': '{"none":1}\n' })
  const daemon = await spawnDaemon(t, where)
  // Blocks the paths of today's entries, so that nothing can be recorded from now on.
  for (const day of [0, 1])
    mkdirSync(
      join(
        where.data,
        'activity',
        'days',
        `${new Date(Date.now() + day * 86_400_000).toISOString().slice(0, 10)}.jsonl`,
      ),
      { recursive: true },
    )
  await runTurn(daemon.client, 'c', 'say hello', { isolated: true })
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const followed = await daemon.client.call(
    'GET /logs/follow',
    { name: 'daemon.log', level: 'error' },
    { signal: stop.signal },
  )
  const began = performance.now()
  const told = (async () => {
    for await (const event of followed) if ('text' in event && event.text.includes('agent.autoland')) return event.text
    return ''
  })()
  await daemon.client.call('POST /agents/{id}/auto-land', { id: 'c', autoLand: true })
  const text = await told
  t.ok(inTime(began, 1000), `${Math.round(performance.now() - began)} ms`)
  t.match(JSON.parse(text), {
    level: 'error',
    group: 'agent',
    message: 'recording an action failed',
    type: 'agent.autoland',
  })
  for (const name of ['daemon.log', 'plugins/agent.log']) {
    const { text } = await daemon.client.call('GET /logs/file', { name, find: 'agent.autoland' })
    t.equal(text.trimEnd().split('\n').length, 1, name)
  }
  const { files } = await daemon.client.call('GET /logs')
  t.match(
    files
      .filter(({ name }) => /^daemon|agent/.test(name))
      .map(({ name, live }) => [name, live])
      .sort(),
    exactly(exactly('daemon.log', true), exactly('plugins/agent.log', true)),
  )
  await daemon.terminate()
  t.notMatch(readFileSync(join(where.data, 'logs', 'daemon.log'), 'utf8'), daemon.session.split('.')[1]!)
})
