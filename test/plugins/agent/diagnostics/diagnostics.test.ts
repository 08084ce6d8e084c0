import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { framedMessage, framedMessages } from '../../../../plugins/agent/diagnostics/framed-messages.js'
import { LanguageServer } from '../../../../plugins/agent/diagnostics/language-server.js'
import { LanguageServers } from '../../../../plugins/agent/diagnostics/language-servers.js'
import { ownProgram } from '../../../../sdk/node/programs/run.js'
import type { SupportOptions } from '../../../support/daemon.js'
import { runningCommands } from '../../../support/running-commands.js'
import type { SeenRequest } from '../../../support/servers/model-server.js'
import { briefedWorld } from '../briefing/world.js'

type Call = { readonly name: string; readonly input: object }

const write = (path: string, content: string): Call => ({ name: 'Write', input: { path, content } })
const resultsIn = ({ body: { messages = [] } }: SeenRequest): string[] =>
  messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content))

/** A sandbox whose model makes these calls, one an answer. */
const editing = (t: Test, calls: readonly Call[], options: SupportOptions = {}) =>
  briefedWorld(
    t,
    request => {
      const next = calls[resultsIn(request).length]
      return next ? { calls: [next] } : { text: ['done'] }
    },
    options,
  )

const noClangd = (await ownProgram('clangd')) === undefined && !process.env.CI

t.test(
  'the errors that a real language server finds come back with the edit, and are gone with them',
  noClangd ? { skip: 'this machine has no clangd (Debian: apt-get install clangd)' } : {},
  async t => {
    const world = await editing(t, [
      write('src/sum.cpp', 'int sum(int a, int b) {\n  return a + c;\n}\n'),
      { name: 'Edit', input: { path: 'src/sum.cpp', old: 'a + c', new: 'a + b' } },
      { name: 'Edit', input: { path: 'src/sum.cpp', old: 'int b)', new: 'int b' } },
      write('notes.txt', 'plain\n'),
    ])
    await world.turn('c', { isolated: true })
    const [made, fixed, broken, other] = resultsIn(world.server.requests.at(-1)!)
    t.match(
      made,
      /^made src\/sum\.cpp, 42 bytes\n\[clangd finds errors in it:\]\nsrc\/sum\.cpp:2:14 Use of undeclared .*$/,
    )
    t.equal(fixed, 'changed src/sum.cpp')
    t.match(broken, /^changed src\/sum\.cpp\n\[clangd finds errors in it:\]\nsrc\/sum\.cpp:1:\d+ Expected/)
    t.equal(other, 'made notes.txt, 6 bytes')
    await world.client.call('POST /agents/archive', { ids: ['c'] })
    t.same(
      runningCommands().filter(command => command.includes('clangd') && command.includes(world.workspace)),
      [],
      'it ends with the conversation',
    )
  },
)

const MESSAGE = (method: string, params: string): string =>
  `const text = JSON.stringify({ jsonrpc: '2.0', method: '${method}', params: ${params} });`
  + "process.stdout.write('Content-Length: ' + Buffer.byteLength(text) + '\\r\\n\\r\\n' + text);"
const READY =
  "let seen = ''; process.stdin.on('data', data => { seen += data; });"
  + "const result = JSON.stringify({ jsonrpc: '2.0', id: 1, result: {} });"
  + "process.stdout.write('Content-Length: ' + result.length + '\\r\\n\\r\\n' + result);"

/** Language servers that harm, and what a model reads of them after the first edit. */
const HOSTILE: {
  readonly [name: string]: { readonly program: string; readonly says: RegExp; readonly then?: RegExp }
} = {
  'dies at once': {
    program: 'process.exit(1)',
    says: /pyright-langserver has ended, so errors of a\.py are not known\]$/,
  },
  'writes no protocol': {
    program: "setInterval(() => process.stdout.write('x'.repeat(65536)), 1)",
    says: /pyright-langserver has ended/,
  },
  'names a message of terabytes': {
    program: "process.stdout.write('Content-Length: 9999999999\\r\\n\\r\\n{}'); setInterval(() => {}, 1000)",
    says: /pyright-langserver has ended/,
  },
  'writes something else than objects': {
    program: "process.stdout.write('Content-Length: 4\\r\\n\\r\\nnull'); setInterval(() => {}, 1000)",
    says: /pyright-langserver has ended/,
  },
  'never answers': {
    program: 'setInterval(() => {}, 1000)',
    says: /^$/,
    then: /does not answer, so errors of a\.py are not known\]$/,
  },
  'floods with other files': {
    program: `${READY} setInterval(() => { for (let n = 0; n < 99; n++) { ${MESSAGE(
      'textDocument/publishDiagnostics',
      "{ uri: 'file:///' + Math.random(), diagnostics: [{ message: 'x'.repeat(9999) }] }",
    )} } }, 1)`,
    says: /^$/,
    then: /does not answer, so errors of a\.py are not known\]$/,
  },
  'finds ever more errors, with control characters': {
    program: `${READY} setInterval(() => { const uri = /"uri":"([^"]*a\\.py)"/.exec(seen)?.[1]; if (uri) { ${MESSAGE(
      'textDocument/publishDiagnostics',
      "{ uri, diagnostics: Array.from({ length: 500 }, () => ({ message: '\\u001b[31m' + 'x'.repeat(9999), "
        + 'range: { start: { line: 2, character: 1 } } })) }',
    )} seen = '' } }, 50)`,
    says: /^\n\[pyright-langserver finds errors in it:\]\n(?:a\.py:3:2  \[31mx+\n){20}and 30 more$/,
  },
}

for (const [name, { program, says, then }] of Object.entries(HOSTILE))
  t.test(`a language server that ${name} costs an edit a while, and nothing else`, async t => {
    const root = t.testdir({ node_modules: { '.bin': { 'pyright-langserver': '' } } })
    const servers = new LanguageServers({ firstMs: 3_000, laterMs: 200 })
    t.teardown(() => servers.close())
    const command = { program: process.execPath, args: ['-e', program], env: {}, cwd: root, enforced: false }
    const after = () =>
      servers.after(
        {
          ...{ conversationId: 'c', path: 'a.py', text: 'a = 1\n', repository: '.', root, seenRoot: root, access: '' },
          walled: async () => command,
        },
        new AbortController().signal,
      )
    const first = await after()
    t.match(first, says)
    t.ok(first.length < 9_000)
    if (!then) return
    await after()
    t.match(await after(), then)
    t.equal(await after(), '', 'it is left alone for a while')
  })

t.test('messages are found however they are cut, and what is none ends the reading', async t => {
  const messages = [{ id: 1, result: 'ä' }, { method: 'x', params: { long: 'y'.repeat(9_000) } }, { id: 2 }]
  const all = Buffer.from(messages.map(framedMessage).join(''))
  for (const size of [1, 7, 100, 8_192, all.length]) {
    const pieces = async function* () {
      for (let at = 0; at < all.length; at += size) yield all.subarray(at, at + size)
    }
    const found: object[] = []
    for await (const message of framedMessages(pieces())) found.push(message)
    t.match(found, messages)
    t.equal(found.length, messages.length)
  }
  for (const bad of ['x'.repeat(5_000), 'Content-Length: -4\r\n\r\n', 'Content-Length: 3\r\n\r\n[1]', 'A: b\r\n\r\n{}'])
    await t.rejects(
      (async () => {
        for await (const _ of framedMessages(
          (async function* () {
            yield Buffer.from(bad)
          })(),
        ));
      })(),
      { message: /^wrote a / },
      bad.slice(0, 30),
    )
})

/** A repository that brings a program in the place of a language server: it writes down that it ran. */
const planted = async (t: Test, calls: readonly Call[], options: SupportOptions = {}) => {
  const world = await editing(t, calls, options)
  const folder = join(world.workspace, 'node_modules/.bin')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'pyright-langserver'), '#!/bin/sh\nenv > ran\n')
  chmodSync(join(folder, 'pyright-langserver'), 0o755)
  return { ...world, ran: join(world.workspace, 'ran') }
}

t.test('an edit starts no program of the repository where a command would be asked about or refused', async t => {
  const { turn, ran, server } = await planted(t, [{ name: 'Append', input: { path: 'a.py', content: 'a = 1\n' } }])
  for (const [conversation, more] of Object.entries({
    asks: { permissionMode: 'acceptEdits' },
    limited: { allowedTools: ['Read', 'Append'] },
  })) {
    await turn(conversation, more)
    t.match(resultsIn(server.requests.at(-1)!).at(-1), /^added 6 bytes to a\.py$/)
    t.notOk(existsSync(ran), conversation)
  }
})

t.test('a language server gets no variable of a connection', async t => {
  const value = 'a-value-of-a-connection'
  const variables = { TOKEN_OF_CONNECTION: value }
  const { turn, ran } = await planted(t, [write('a.py', 'a = 1\n')], {
    fakes: { 'env.variables': () => ({ variables }) },
  })
  await turn('c')
  t.match(readFileSync(ran, 'utf8'), 'PATH=', 'it ran')
  t.notMatch(readFileSync(ran, 'utf8'), value)
})

t.test('an edit that was made succeeds, whatever becomes of the errors in the file', async t => {
  const { turn, server, workspace } = await editing(t, [
    { name: 'Append', input: { path: 'big.py', content: '# more' } },
  ])
  writeFileSync(join(workspace, 'big.py'), `#${' '.repeat(16 * 1024 * 1024 - 2)}\n`)
  await turn('c')
  t.equal(resultsIn(server.requests.at(-1)!).at(-1), 'added 6 bytes to big.py')
})

/** A command that runs a program of Node without a wall. */
const unwalled = (program: string, cwd: string) => ({
  ...{ program: process.execPath, args: ['-e', program], env: {}, cwd, enforced: false },
})

t.test('addresses that a server makes up do not keep the daemon from everything else', async t => {
  const root = t.testdir()
  const program =
    `${READY} process.stdin.on('data', () => { if (seen.split('didOpen').length > 100) {`
    + `${MESSAGE('textDocument/publishDiagnostics', "{ uri: 'file:///' + '%41'.repeat(2_500_000), diagnostics: [] }")}`
    + " seen = ''; require('fs').writeFileSync('sent', '') } })"
  const server = new LanguageServer(unwalled(program, root), root, () => undefined)
  t.teardown(() => server.end())
  const loop = monitorEventLoopDelay({ resolution: 10 })
  const check = (n: number) =>
    server.check({ seen: join(root, `${n}.py`), text: '', languageId: 'python' }, 5_000, new AbortController().signal)
  const checks = Promise.all(Array.from({ length: 100 }, (_, n) => check(n)))
  while (!existsSync(join(root, 'sent'))) await delay(20)
  loop.enable()
  await delay(1_500)
  loop.disable()
  t.ok(loop.max < 1e9, `${loop.max / 1e6} ms`)
  await server.end()
  await checks
})

t.test('of too many servers the one ends that was not used for longest, and none is given up for it', async t => {
  const root = t.testdir({ node_modules: { '.bin': { 'pyright-langserver': '' } } })
  const servers = new LanguageServers({ firstMs: 5_000, laterMs: 5_000 })
  t.teardown(() => servers.close())
  const answers =
    `${READY} process.stdin.on('data', () => { const uri = /"uri":"([^"]*a\\.py)"/.exec(seen)?.[1];`
    + `if (uri) { seen = ''; ${MESSAGE('textDocument/publishDiagnostics', '{ uri, diagnostics: [] }')} } })`
  let started = 0
  const after = (conversationId: string) =>
    servers.after(
      {
        ...{ conversationId, path: 'a.py', text: 'a = 1\n', repository: '.', root, seenRoot: root, access: '' },
        walled: async () => {
          started += 1
          return unwalled(answers, root)
        },
      },
      new AbortController().signal,
    )
  for (let n = 0; n < 12; n++) await after(`c-${n}`)
  await after('c-0')
  await after('c-12')
  t.equal(started, 13)
  await after('c-0')
  t.equal(started, 13, 'the one that was just used runs')
  t.equal(await after('c-1'), '')
  t.equal(started, 14, 'the other one is started again')
})
