import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { answerLines } from '../../../sdk/cli/calls/answer.js'
import { commandOf } from '../../../sdk/cli/calls/command.js'
import type { OpenApiDocument } from '../../../sdk/cli/calls/document.js'
import { operationsOf } from '../../../sdk/cli/calls/operation.js'
import { verbHelp } from '../../../sdk/cli/help.js'
import { VERBS } from '../../../sdk/cli/program.js'
import { folderOf, makeWorkspace, root } from '../../support/daemon.js'
import { going, sandbox } from './cli-process.js'

const published = JSON.parse(readFileSync(join(root, '..', 'openapi', 'openapi.json'), 'utf8')) as OpenApiDocument
const operations = operationsOf(published)

t.test('every call of the document except WebSockets is a command, with help', t => {
  const calls = Object.entries(published.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, found]) =>
      found['x-client-frame'] ? [] : [`${method.toUpperCase()} ${path}`],
    ),
  )
  t.same(operations.map(each => each.call).sort(), calls.sort())
  const names = operations.map(each => `${each.group} ${each.name}`)
  t.same(names, [...new Set(names)], 'no two have the same name')
  for (const operation of operations) {
    const help = verbHelp(commandOf({ name: operation.name, operation, hidden: false }), 40)
    t.same(
      help
        .split('\nexamples:\n')[0]!
        .split('\n')
        .filter(line => line.length > 40 && line.trim().includes(' ')),
      [],
      operation.call,
    )
    for (const field of operation.fields) t.notMatch(field.name, /[^\w]/, `${operation.call} ${field.name}`)
  }
  t.end()
})

t.test('the help of a verb with the name of a group says so', t => {
  const groups = new Set(operations.map(each => each.group))
  t.same(
    VERBS.filter(({ name, also = name }) => groups.has(name) || groups.has(also))
      .map(({ name, also = name }) => (groups.has(name) ? name : also))
      .sort(),
    VERBS.flatMap(({ group }) => group ?? []).sort(),
  )
  t.end()
})

t.test('calls are made by group and name, with fields by position, as options and as pairs', async t => {
  const state = folderOf(t)
  const workspace = join(state, 'workspace')
  makeWorkspace(workspace)
  mkdirSync(join(workspace, 'docs'))
  const env = { XDG_STATE_HOME: state }
  const run = (...args: string[]) => sandbox(args, { env })
  await going(t, ['serve', '--workspace', workspace, '--port', '0'], { env }).until(/ready at/)

  t.match(await run('settings', 'get'), {
    code: 0,
    out: /(?:^|\n)skills: none\n(.*\n)*agentRetentionDays: 3\n(.*\n)*networkAllow: none\n/,
  })
  t.match(JSON.parse((await run('settings', 'get', '--json')).out), { agentRetentionDays: 3 })
  t.match(await run('--json', 'settings', 'get'), { code: 0, out: /^\{/ })

  t.equal((await run('run', 'say hi', '--shared', '--conversation', 'c-1')).code, 0)
  t.match(
    await run('agents', 'list', '--json'),
    { code: 0, out: /^\{"rev":\d+,.*"id":"c-1"/ },
    'a call of a group whose name is also a verb',
  )
  t.match(await run('agents'), { code: 0, out: /^CONVERSATION/ }, 'the verb is unchanged')
  t.match(await run('agents', 'rename', 'c-1', 'A = b'), { code: 0, out: 'c-1 is called A = b\n' }, 'by place')
  t.match(await run('agents', 'rename', '--title', 'by option', 'c-1'), { code: 0, out: 'c-1 is called by option\n' })
  writeFileSync(join(state, 'title.txt'), 'from a file')
  t.match(await run('agents', 'rename', 'c-1', `title=@${join(state, 'title.txt')}`), {
    code: 0,
    out: 'c-1 is called from a file\n',
  })
  t.match(
    await run('agents', 'auto-land', 'c-1', 'true'),
    { code: 5, err: /shared|private copy/ },
    'the refusal of the call',
  )
  t.match(await run('agents', 'auto-land', 'c-1', 'maybe'), {
    code: 2,
    err: /^sandbox: autoLand: expected one of true, false, null, found maybe/,
  })
  t.match(
    await run('agent', 'attach', 'c-1'),
    { code: 0, out: /^\{"kind":"attached".*\n(\{"kind":"frame".*\n)+\{"kind":"end".*\n$/ },
    'a stream, one event per line',
  )

  t.match(await run('system', 'mint-token', 'ci', '--scope', 'read'), { code: 0, out: /\ntoken +sbc_/ })
  t.match(await run('system', 'tokens'), { code: 0, out: /LABEL[^]*\bci\b/ })
  t.match(await run('activity', 'list', '--limit', '1', '--json'), { code: 0, out: /"events":\[\{[^[]*\]/ })
  t.match(await run('agents', 'seen-all', 'ids=c-1', 'ids=c-1'), { code: 0, out: /c-1/ })
  t.match(
    await run('agents', 'seen-all', 'ids=nope', 'ids=c-1'),
    { code: 5, err: /nope/ },
    'a list is given item by item, and the first is not lost',
  )
  t.match(await run('system', 'export', 'passphrase=correct horse'), {
    code: 2,
    err: /can see arguments: give passphrase as passphrase=@FILE/,
  })
  t.match(await run('system', 'export', '--passphrase', 'correct horse'), { code: 2, err: /unknown option/ })
  t.match(await run('areas', 'show', 'nope'), { code: 5, err: /nope/ }, "a word of the verb is the verb's")

  t.match(await run('calls', 'areas'), { code: 0, out: /^COMMAND +WHAT IT DOES\nareas delete / })
  t.equal(
    (await run('calls', '--names')).out.split('\n').filter(Boolean).join(' '),
    [...new Set(operations.map(each => each.group))].join(' '),
  )
  t.match(
    (await run('calls', 'settings', '--names')).out,
    'builtin-prompt\nfirings\nget\nmodels\npatch\nsavings\nschema\nset\ntest-rules\n',
  )

  const listed = await run('settings', '--help')
  t.match(listed, {
    code: 0,
    out: /^usage: sandbox settings \[VERB\] .*\n(.*\n)+ {2}get +\S.*\.\n(.*\n)* {2}patch +\S.*\.\n/,
  })
  t.same(await run('help', 'settings'), listed)
  t.match(await run('help', 'settings', 'get'), { code: 0, out: /^usage: sandbox settings get\n/ })
  t.match(
    await run('help', 'agents'),
    { code: 0, out: /^usage: sandbox agents\n(.*\n)+It is also a group of calls: sandbox calls agents lists them\./ },
    'a verb keeps its help',
  )
  t.match(await run('help', 'nope'), { code: 2, err: /^sandbox: no verb nope; / })

  t.match(await run('agents', 'rename', 'c-1'), {
    code: 2,
    err: /^sandbox: agents rename: expected TITLE, found nothing: \S+ agents rename ID TITLE; .*--help/,
  })
  t.match(await run('agents', 'rename', 'c-1', 'a', 'b'), { code: 2, err: /expected 2 arguments, found 3/ })
  t.match(await run('activity', 'list', '--limit', 'few'), {
    code: 2,
    err: /^sandbox: limit: expected a number, found few\n$/,
  })
  t.match(await run('settings', 'gt'), {
    code: 2,
    err: /^sandbox: no verb gt of settings; did you mean settings get\?; .*: builtin-prompt, firings, get, /,
  })
  t.match(await run('calls', 'nope'), { code: 2, err: /^sandbox: expected a group \(accounts, / })
  t.match(await run('nope', 'x'), { code: 2, err: /^sandbox: no verb nope; / })
  t.match(await run('system', 'restore'), { code: 2, err: /takes a file|expected/ })
})

t.test('without a daemon a group is known, and its verbs need one', async t => {
  t.match(await sandbox(['settings', 'get'], { env: { XDG_STATE_HOME: t.testdir() } }), {
    code: 3,
    err: /no (running )?daemon/,
  })
})

t.test('answers are shown as lines, and lists of objects as tables', t => {
  const now = Date.UTC(2027, 0, 15, 8)
  const shown = (answer: unknown, did = 'done') => answerLines(answer, { now, self: 'sandbox', did })
  t.same(
    shown({
      agents: [
        { id: 'a', at: now - 120_000, inner: { x: 1 } },
        { id: 'b', note: 'two\nlines', startedAt: now + 3_600_000 },
      ],
      total: 2,
    }),
    [
      'total: 2',
      '',
      'agents:',
      'ID  AT         NOTE        STARTED AT',
      'a   2 min ago',
      'b              two\\nlines  in 1 h',
    ],
  )
  t.same(shown({ ok: true }, 'removed x'), ['removed x'], 'a change says what was done')
  t.same(shown({ links: [] }), ['no links'])
  t.same(shown({ inner: { updatedAt: 5, empty: [] }, text: 'one\ntwo\n', list: ['a', 'b'] }), [
    'inner.updatedAt: 5',
    'inner.empty: none',
    'text:',
    '  one',
    '  two',
    'list: a, b',
  ])
  t.same(shown({ sizeBytes: 2048, costUsd: 1.5, timeoutMs: 90_000, cpuPct: 12.4, on: true }), [
    'sizeBytes: 2.0 KiB',
    'costUsd: $1.50',
    'timeoutMs: 1 min 30 s',
    'cpuPct: 12 %',
    'on: yes',
  ])
  t.same(shown([{ a: 1 }]), ['A', '1'])
  t.same(shown({ a: '\u001b[2J' }), ['a: \\u001b[2J'], 'no control sequence reaches the terminal')
  t.end()
})
