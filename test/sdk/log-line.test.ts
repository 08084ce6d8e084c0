import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createLog } from '../../kernel/logs/log.js'
import { CommandLogs } from '../../plugins/agent/turn/environment/command-logs.js'
import { shownLogLine } from '../../plugins/console/web/data/log-lines.js'
import { ExtensionLogs } from '../../plugins/extensions/backend/process/log.js'
import { isGrave } from '../../plugins/logs/line.js'
import { isAtLeast, logHead, logLine, readLogLine } from '../../sdk/log-line.js'
import { groupLog, inWords } from '../../sdk/node/logs/line.js'
import { RotatingFile } from '../../sdk/node/logs/rotating-file.js'

const messageOf = (line: string): string => (JSON.parse(line) as { message: string }).message

/** Lines of every writer of a log, by the writer. */
const written = async (folder: string): Promise<{ readonly [writer: string]: readonly string[] }> => {
  const kernel: string[] = []
  const log = createLog(
    true,
    () => {},
    line => kernel.push(line),
  )
  for (const level of ['info', 'warn', 'error', 'fatal'] as const) log[level]({ id: 'c' }, `a ${level}`)
  groupLog(log, 'agents').warn('of a group', { level: 'high', at: 'noon' })
  log.error({ err: new Error('broken') }, 'failed\nforged')

  const commands = new CommandLogs(folder)
  commands.of('c-1', 'r-1')({ command: 'true', folder: '' })({ exit: 1, output: 'x' })
  await commands.close()

  const extensions = new ExtensionLogs(folder)
  extensions.write('ada.hello', 'warn', 'plain')
  extensions.write('ada.hello', 'error', 'with fields', { level: 'none', pid: 'x', group: 7, more: [1] })
  await extensions.close()

  const lost = new RotatingFile(join(folder, 'lost.log'), { backlog: 10 })
  lost.write('a line that is too long\n')
  lost.write('short\n')
  await lost.close()
  const lines = (...path: string[]) => readFileSync(join(folder, ...path), 'utf8').match(/.*\n/g) ?? []
  return {
    kernel,
    commands: lines('c-1', 'commands.log'),
    extensions: lines('plugins', 'extension-ada.hello.log'),
    lost: lines('lost.log').slice(0, 1),
  }
}

t.test('every reader of a log reads the lines of every writer', async t => {
  for (const [writer, lines] of Object.entries(await written(t.testdir()))) {
    t.ok(lines.length > 0, writer)
    for (const line of lines) {
      const [, level, at] = /^\{"level":"(\w+)","at":(\d+),/.exec(line) ?? []
      const found = { level: level === 'fatal' ? 'error' : level!, at: Number(at), message: messageOf(line) }
      const head = logHead(line)
      t.match(head, { level: found.level, at: found.at }, `${writer}: ${line}`)
      t.match(readLogLine(line), found, `${writer} as a whole`)
      t.match(
        shownLogLine('1', line.trimEnd()),
        { text: found.message, level: found.level, at: found.at },
        'in the console',
      )
      t.equal(isGrave(line, 'warn'), head !== undefined && isAtLeast(head.level, 'warn'), 'in the calls')
      if (isGrave(line, 'warn')) t.match(inWords(line), found.message.replaceAll('\n', '\\n'), 'for a person')
    }
  }
})

t.test('the first fields are those of the writer, also where a further field has their name', t => {
  const line = logLine({ level: 'warn', at: 5, message: 'm', group: 'agents', pid: 3, more: true })
  t.same(logHead(line), { level: 'warn', at: 5, pid: 3, group: 'agents' })
  t.end()
})

t.test('text that is no line of the log is none', t => {
  for (const text of [
    '',
    '{',
    'error: x',
    '{"level":30,"msg":"x"}',
    '{"level":"warn","at":1',
    '{"at":1,"level":"warn"}',
  ])
    t.equal(readLogLine(text), undefined, text)
  t.equal(readLogLine('{"level":"warn","at":1}'), undefined, 'without a message')
  t.end()
})
