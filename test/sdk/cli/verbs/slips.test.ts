import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { VERBS } from '../../../../sdk/cli/program.js'
import { programName } from '../../../../sdk/cli/terminal/own-name.js'
import { daemonWith, inGit } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { runTurn } from '../../../support/turns.js'
import { json, wireServer } from '../../wire.js'
import { fakeDaemon, PROGRAM, sandbox } from '../cli-process.js'
import { document } from '../published.js'

/** A daemon, and the command line with a token for it. */
const commandLine = async (t: Test, groups: readonly string[]) => {
  const daemon = await daemonWith(t, [...groups])
  const { token } = await daemon.token('land')
  const run = (...args: string[]) => sandbox(args, { env: { SANDBOX_URL: daemon.url, SANDBOX_TOKEN: token } })
  return { daemon, run }
}

t.test('a text alone that is the id of a conversation is refused by every verb that takes both', async t => {
  const card = { id: 'c-1', status: 'idle', updatedAt: 1 }
  const daemon = await fakeDaemon(t, ({ path }, response) => {
    if (path === '/agents') return { agents: [card], rev: 1, held: [] }
    return path === '/agents/c-1' ? card : json(response, 404, { reason: 'not-found', message: 'no such conversation' })
  })
  const verbs = VERBS.filter(({ usage, hidden }) => !hidden && /^\[CONVERSATION\] "?[A-Z]+"?/.test(usage))
  t.ok(verbs.length >= 3, verbs.map(({ name }) => name).join(', '))
  for (const { name } of verbs) {
    const before = daemon.calls().length
    const { code, out, err } = await daemon.run([name, 'c-1'])
    t.same([code, out], [2, ''], name)
    t.match(err, /^sandbox: expected sandbox .* found the conversation c-1 alone/, name)
    t.same(
      daemon
        .calls()
        .slice(before)
        .filter(({ method }) => method !== 'GET'),
      [],
      `${name} changes nothing`,
    )
  }
})

t.test('an address where nothing is a daemon is named, with and without something that listens', async t => {
  const { url: other } = await wireServer(t, (_, response) => json(response, 404, { message: 'a page of its own' }))
  for (const url of [other, 'http://127.0.0.1:1'])
    t.match(await sandbox(['agents', '--url', url]), { code: 3, err: `sandbox: no daemon answers at ${url}\n` })
})

t.test('a publishing that only checks says what it would publish, and the digest for the next call', async t => {
  const digest = '83'.repeat(32)
  const entry = { path: 'x.txt', files: 1, bytes: 3, blocked: [], digest }
  const daemon = await fakeDaemon(t, () => entry, { document })
  const [flag, verb] = [
    await daemon.run(['outbox', 'publish', 'x.txt', '--mode', 'check']),
    await daemon.run(['outbox', 'check', 'x.txt']),
  ]
  t.equal(flag.out, verb.out)
  t.match(flag.out, /^would publish x\.txt; nothing is published yet\n/)
  t.match(flag.out, digest)
})

t.test('the head of a file in a diff counts the lines that are shown below it', async t => {
  const change = { path: 'a.txt', status: 'added', additions: 1, deletions: 0, landed: false }
  const tip = 'a'.repeat(40)
  const daemon = await fakeDaemon(t, ({ path }) =>
    path.endsWith('/file-diff')
      ? { before: '', after: 'one\ntwo\n' }
      : { repos: [{ repo: 'root', branch: 'agent/c-1', tip, changes: [change], modules: [] }] },
  )
  const { out } = await daemon.run(['diff', 'c-1'])
  t.match(out, /^A a\.txt {2}\+2 -0\n@@ -0,0 \+1,2 @@\n\+one\n\+two\n/, 'the turn wrote on after it was listed')
})

t.test('the transcript of a conversation that waits has its question, also as JSON', async t => {
  const { run } = await commandLine(t, ['agent', 'agents'])
  t.equal((await run('ci-step', 'say so far\nask Which colour?\n| Red', '--conversation', 'c-1')).code, 4)
  const { turn } = JSON.parse((await run('transcript', 'c-1', '--json')).out) as {
    turn: { prompt: string; text: string; cards: { requestId: string; questions: { question: string }[] }[] }
  }
  t.match(turn.prompt, 'ask Which colour?')
  t.match(turn.text, 'so far')
  t.match(turn.cards, exactly({ questions: exactly({ question: 'Which colour?' }) }))
  t.match(await run('answer', turn.cards[0]!.requestId, 'Red'), { code: 0 })
})

t.test('a landing that finds a folder where a file is needed, or a file for a folder, says so', async t => {
  const { daemon, run } = await commandLine(t, ['agent', 'agents'])
  const { workspace, client } = daemon
  await runTurn(client, 'file', 'write notes\n| x', { isolated: true })
  await runTurn(client, 'folder', 'write docs/a.md\n| x', { isolated: true })
  await runTurn(client, 'loose', 'write loose\n| x', { isolated: true })
  mkdirSync(join(workspace, 'notes'))
  writeFileSync(join(workspace, 'notes', 'a.md'), 'x\n')
  writeFileSync(join(workspace, 'docs'), 'x\n')
  inGit(workspace, 'add', '-A')
  inGit(workspace, 'commit', '-qm', 'in the way')
  mkdirSync(join(workspace, 'loose'))
  writeFileSync(join(workspace, 'loose', 'a.md'), 'x\n')
  for (const [id, line] of [
    ['file', 'notes: the workspace has a folder at notes'],
    ['folder', 'docs/a.md: the workspace has a file at docs'],
    ['loose', 'loose: the workspace has a folder at loose'],
  ] as const) {
    const { code, out } = await run('land', id)
    t.equal(code, 5, id)
    t.match(out, line, id)
  }
  const { files } = await client.call('GET /agents/{id}/conflicts', { id: 'folder' })
  t.match(files, exactly({ path: 'docs/a.md', inTheWay: { path: 'docs', what: 'file' } }))
})

t.test('hints name the command by the path that was typed, and by its name if the person has it on PATH', async t => {
  const folder = t.testdir({ node_modules: { '.bin': {} }, elsewhere: {} })
  const bin = join(folder, 'node_modules', '.bin')
  symlinkSync(PROGRAM, join(bin, 'sandbox'))
  const typed = join(bin, 'sandbox')
  const whole = programName({}, '/', PROGRAM)
  t.equal(programName({ PATH: bin }, '/', PROGRAM), 'sandbox', 'a person put the folder on PATH')
  t.equal(programName({ PATH: bin, npm_execpath: '/usr/bin/npm' }, '/', PROGRAM), whole, 'npm put it there')
  t.equal(programName({ _: typed }, '/', PROGRAM), typed)
  const prefixed = { PATH: bin, npm_execpath: '/usr/bin/npm', npm_config_local_prefix: folder, _: '/usr/bin/npx' }
  t.equal(programName(prefixed, '/', PROGRAM), `npx --prefix ${folder} sandbox`, 'npx was told where it is')
  t.equal(programName({ _: '../node_modules/.bin/sandbox' }, join(folder, 'elsewhere'), PROGRAM), 'npx sandbox')
  t.equal(programName({ _: '/usr/bin/env' }, '/', PROGRAM), whole, 'something else ran it')
  t.end()
})

t.test('a refusal that names a call names the verb that makes it', async t => {
  const message = 'origin has no address: set it with POST /git/{repo}/remotes, or ask GET /no/such/call'
  const daemon = await fakeDaemon(t, (_, response) => json(response, 422, { reason: 'unprocessable', message }))
  const { err } = await daemon.run(['agents'])
  t.equal(err, 'sandbox: origin has no address: set it with sandbox git set-remote, or ask GET /no/such/call\n')
  const asJson = await daemon.run(['agents', '--json'])
  t.match(JSON.parse(asJson.err), { message }, 'programs get the call')
})
