import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { CommandLogs } from '../../../../plugins/agent/turn/environment/command-logs.js'
import { daemonWith } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { framesOf, runTurn } from '../../../support/turns.js'

interface Line {
  readonly level: string
  readonly at: number
  readonly message: string
  readonly run: string
  readonly id: number
  readonly command: string
  readonly folder: string
  readonly startedAt: number
  readonly ms?: number
  readonly exit?: number
  readonly output?: string
  readonly stopped?: boolean
}
const linesOf = (path: string): Line[] =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as Line)
const VENDOR = { harness: 'vendor-code' } as const

for (const [kind, options] of Object.entries({ 'of the sandbox': {}, 'of an agent program': VENDOR })) {
  t.test(`every command ${kind} is in the log of its conversation, with its end and without credentials`, async t => {
    const daemon = await daemonWith(t, ['system', 'agent', 'logs'])
    const { client } = daemon
    mkdirSync(join(daemon.workspace, 'sub'))
    await runTurn(client, 'mine', 'run echo "authorization: Bearer hidden-value"; exit 3', options)
    await runTurn(client, 'mine', 'run echo two', options)
    await runTurn(client, 'other', 'run echo sbc_hiddentoken1', options)
    const { files } = await client.call('GET /logs', { kind: 'run' })
    t.same(
      files
        .map(({ name, kind, conversationId }) => ({ name, kind, conversationId }))
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
      [
        { name: 'runs/mine/commands.log', kind: 'run', conversationId: 'mine' },
        { name: 'runs/other/commands.log', kind: 'run', conversationId: 'other' },
      ],
    )
    const lines = linesOf(join(daemon.data, 'logs', 'runs', 'mine', 'commands.log'))
    t.equal(lines.length, 4)
    const [began, ended, , two] = lines as [Line, Line, Line, Line]
    t.match(began, {
      level: 'info',
      message: 'a command begins',
      command: 'echo "authorization: [redacted]"; exit 3',
      folder: '.',
    })
    t.match(ended, {
      level: 'warn',
      message: 'a command has ended',
      id: began.id,
      run: began.run,
      startedAt: began.startedAt,
      exit: 3,
      output: 'authorization: [redacted]\n',
    })
    t.ok(ended.ms! >= 0 && ended.startedAt <= ended.at)
    t.match(two, { level: 'info', command: 'echo two', exit: 0, output: 'two\n' })
    t.not(two.run, ended.run)
    const found = await client.call('GET /logs/file', { name: 'runs/mine/commands.log', level: 'warn' })
    t.same(
      found.text
        .trimEnd()
        .split('\n')
        .map(line => JSON.parse(line).exit),
      [3],
    )
    t.notMatch(readFileSync(join(daemon.data, 'logs', 'runs', 'other', 'commands.log'), 'utf8'), 'hiddentoken')
  })
}

t.test('the log has a command that was stopped with its turn, and a running one before its end', async t => {
  const daemon = await daemonWith(t, ['system', 'agent'])
  const { client } = daemon
  const path = join(daemon.data, 'logs', 'runs', 'long', 'commands.log')
  await client.call('POST /agent', { conversationId: 'long', prompt: 'run echo begun; sleep 611' })
  const frames = framesOf(client, 'long')
  while (!existsSync(path) || !readFileSync(path, 'utf8').endsWith('\n')) await delay(10)
  t.match(linesOf(path), exactly({ message: 'a command begins', command: 'echo begun; sleep 611' }))
  await client.call('POST /agent/stop', { conversationId: 'long' })
  await frames.all()
  while (readFileSync(path, 'utf8').split('\n').length < 3) await delay(10)
  t.match(linesOf(path)[1], { message: 'a command has ended', level: 'warn', stopped: true })
})

t.test('a purge removes the log of the commands, a discard keeps it with the record', async t => {
  const { client, data } = await daemonWith(t, ['system', 'agent', 'agents'])
  const folder = (id: string) => join(data, 'logs', 'runs', id)
  for (const id of ['purged', 'discarded']) await runTurn(client, id, 'run echo of it', { isolated: true })
  await client.call('POST /agents/archive', { ids: ['purged'] })
  await client.call('POST /agents/purge', { ids: ['purged'] })
  await client.call('POST /agents/{id}/discard', { id: 'discarded' })
  t.notOk(existsSync(folder('purged')))
  t.ok(existsSync(join(folder('discarded'), 'commands.log')))
})

t.test('turns continue if the log cannot be written or its path is taken', async t => {
  const daemon = await daemonWith(t, ['system', 'agent'])
  mkdirSync(join(daemon.data, 'logs'), { recursive: true })
  writeFileSync(join(daemon.data, 'logs', 'runs'), 'no folder')
  const frames = await runTurn(daemon.client, 'work', 'run echo fine\nsay $out')
  t.match(
    frames.find(({ kind }) => kind === 'done'),
    { reason: 'completed' },
  )
  t.equal(readFileSync(join(daemon.data, 'logs', 'runs'), 'utf8'), 'no folder')
})

t.test('long outputs and commands are cut, and neither can begin a line or control a terminal', async t => {
  const folder = t.testdir()
  const logs = new CommandLogs(folder)
  const begin = logs.of('c', 'r-1')
  const key = `-----BEGIN PRIVATE KEY-----\n${'aGlkZGVu\n'.repeat(3_000)}-----END PRIVATE KEY-----\n`
  begin({ command: 'x '.repeat(50_000), folder: 'a/b' })({
    exit: 0,
    output: `first\n${'words '.repeat(200_000)}${key}\u202elast\x1b[2J`,
  })
  begin({ command: `echo "\n{"level":"error"}" \ud800`, language: 'javascript', folder: '' })({
    signal: 'SIGKILL',
    timedOut: true,
    output: 'half \ud800',
  })
  const late = begin({ command: 'late', folder: '' })
  await logs.close()
  late({ exit: 0, output: 'after the end' })
  await logs.close()
  const text = readFileSync(join(folder, 'c', 'commands.log'), 'utf8')
  const lines = linesOf(join(folder, 'c', 'commands.log'))
  t.notMatch(text, /aGlk|[\u202e\x1b]/)
  t.ok(lines.every(line => line.command.length < 10_000))
  t.match(
    lines.map(({ message, id }) => `${id} ${message}`),
    exactly(
      '1 a command begins',
      '1 a command has ended',
      '2 a command begins',
      '2 a command has ended',
      '3 a command begins',
    ),
  )
  t.match(lines[1]!.output, /^first\n[^]*… \d+ characters left out …\n[^]*last/)
  t.ok(lines[1]!.output!.length < 70_000)
  t.match(lines[3], { level: 'warn', signal: 'SIGKILL', timedOut: true, folder: '.', language: 'javascript' })
})

t.test('a link at the path of a log is not followed', async t => {
  const folder = t.testdir({ elsewhere: 'as it was', logs: { c: {} } })
  symlinkSync(join(folder, 'elsewhere'), join(folder, 'logs', 'c', 'commands.log'))
  const logs = new CommandLogs(join(folder, 'logs'))
  logs.of('c', 'r')({ command: 'x', folder: '' })({ exit: 0, output: '' })
  await logs.close()
  t.equal(readFileSync(join(folder, 'elsewhere'), 'utf8'), 'as it was')
  t.notOk(existsSync(join(folder, 'logs', 'c', 'commands.log.1')))
})
