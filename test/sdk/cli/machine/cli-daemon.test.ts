import { existsSync, globSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createClient } from '../../../../sdk/client.js'
import { folderOf, inGit, makeWorkspace } from '../../../support/daemon.js'
import { going, sandbox } from '../cli-process.js'

const READY = /ready at (http:\S+)/
const SAID = 'You chose: Nothing. The file is sandbox-demo.md.'

/** A workspace with a real daemon, started by the program itself. */
const served = async (t: Test, args: readonly string[] = []) => {
  const state = folderOf(t)
  const workspace = join(state, 'workspace')
  makeWorkspace(workspace)
  const env = { XDG_STATE_HOME: state }
  const start = async (more: readonly string[] = ['--port', '0']) => {
    const daemon = going(t, ['serve', '--workspace', workspace, ...more, ...args], { env })
    const [, url = ''] = await daemon.until(READY)
    return { ...daemon, url }
  }
  return {
    state,
    workspace,
    env,
    start,
    run: (args: readonly string[], options = {}) => sandbox(args, { env, ...options }),
  }
}

/** The process of the only daemon. */
const daemonPid = (state: string): number => {
  const [note] = globSync(join(state, 'sandbox', '*', 'daemon.json'))
  return (JSON.parse(readFileSync(note!, 'utf8')) as { pid: number }).pid
}

const conversationOf = (out: string): string => /conversation (c-\S+)/.exec(out)![1]!

t.test('a turn is run, read, landed and discarded from the command line', async t => {
  const { workspace, start, run } = await served(t)
  await start()
  const turn = await run(['run', '/demo', '--answer', '2'])
  t.same([turn.code, turn.err], [0, ''])
  t.match(turn.out, SAID)
  t.match(
    turn.out,
    new RegExp(
      String.raw`in a private copy on agent/c-.*✓ Write sandbox-demo\.md\n {2}sandbox-demo\.md \(new\)\n`
        + String.raw`.*answered: Nothing.*done\n`,
      's',
    ),
  )
  const id = conversationOf(turn.out)

  t.notOk(existsSync(join(workspace, 'sandbox-demo.md')), 'the workspace is unchanged')
  const shown = await run(['diff', id])
  t.match(shown.out, /^A sandbox-demo\.md {2}\+3 -0\n@@ -0,0 \+1,3 @@\n\+# Hello from the sandbox\n/)
  t.same(await run(['land', id]), {
    code: 0,
    out:
      'landed: 1 file is in the workspace as uncommitted changes\n'
      + 'new conversations start from the last commit, without it; next: sandbox git commit "MESSAGE" --paths '
      + 'sandbox-demo.md --only\n',
    err: '',
  })
  t.equal(inGit(workspace, 'status', '--short'), '?? sandbox-demo.md\n')
  t.match((await run(['land', id])).out, 'landed: nothing was outstanding')

  t.match((await run(['agents'])).out, new RegExp(`^CONVERSATION .*\\n${id} +landed +1 file \\+3 -0 `))
  t.equal((await run(['discard', id])).out, `discarded ${id}\n`)
  t.match((await run(['agents'])).out, 'no conversations yet')
  t.equal((await run(['diff', id])).code, 5)
})

t.test('a daemon with another data folder is found from its workspace and by its address', async t => {
  const { state, env, workspace, start, run } = await served(t)
  const first = await start()
  const other = join(state, 'other')
  makeWorkspace(other)
  const daemon = going(t, ['serve', '--workspace', other, '--port', '0', '--data', join(state, 'data', 'of-another')], {
    env,
  })
  const [, url = ''] = await daemon.until(READY)
  const conversation = async (cwd: string, more: readonly string[] = []) =>
    (await run(['run', 'say hi', '--detach', '--shared', ...more], { cwd })).out
  t.match(await conversation(other), /^conversation c-/)
  t.match((await run(['agents'], { cwd: other })).out, /shared tree/)
  t.match((await run(['agents', '--url', url])).out, /shared tree/, 'by its address, without a token')
  t.match((await run(['agents'], { cwd: workspace })).out, /no conversations yet/)
  const several = await run(['agents'])
  t.match(several, { code: 3, err: /2 daemons are running/ })
  t.match(several.err, first.url)
  t.match(several.err, url)
})

t.test('a daemon ends with the program that serves it, also when that is killed', async t => {
  const { state, start, run } = await served(t)
  const serving = await start()
  const pid = daemonPid(state)
  process.kill(serving.pid, 'SIGKILL')
  for (let alive = true; alive; await delay(50)) {
    try {
      process.kill(pid, 0)
    } catch {
      alive = false
    }
  }
  t.match(await run(['agents']), { code: 3, err: /no daemon is running/ })
  await start()
  t.equal((await run(['agents'])).code, 0, 'the next one starts')
})

t.test('conflicts are listed, with exit code 5, and nothing is written', async t => {
  const { workspace, start, run } = await served(t)
  await start()
  const turn = await run(['run', '-'], { input: 'write README.md\n| # theirs\n' })
  t.equal(turn.code, 0)
  writeFileSync(join(workspace, 'README.md'), '# mine\n')
  const landing = await run(['land', conversationOf(turn.out)])
  t.equal(landing.code, 5)
  t.match(
    landing.out,
    /^not landed:\nroot: 1 of 1 paths conflict on main\n {2}README\.md: your uncommitted change is in the way\n$/,
  )
  t.equal(readFileSync(join(workspace, 'README.md'), 'utf8'), '# mine\n')
  inGit(workspace, 'commit', '-q', '-a', '-m', 'mine')
  const merged = await run(['land', conversationOf(turn.out), '--merge'])
  t.equal(merged.code, 0)
  t.match(
    merged.out,
    new RegExp(
      String.raw`^landed: 1 file is in the workspace as uncommitted changes\n`
        + String.raw` {2}README\.md: contains conflict markers; resolve them\n$`,
    ),
  )
  t.match(
    readFileSync(join(workspace, 'README.md'), 'utf8'),
    /^<<<<<<< workspace\n# mine\n=======\n# theirs\n>>>>>>> agent\/c-/,
  )
})

t.test('a run is followed across a kill of the daemon, and its card is answered afterwards', async t => {
  const { start, env, run } = await served(t)
  const first = await start()
  const watching = going(
    t,
    ['run', 'ask Which way?\n| Left: there\n| Right: here\nsay You went $answer.', '--timeout', '2m'],
    { env },
  )
  const [, card] = await watching.until(/to answer: sandbox answer (\S+) Left/)
  const id = conversationOf(watching.out())
  process.kill(daemonPid(env.XDG_STATE_HOME), 'SIGKILL')
  await first.ended
  await start(['--port', new URL(first.url).port])
  t.same(await run(['answer', card!, 'Right']), { code: 0, out: 'answered: Right\n', err: '' })
  t.equal(await watching.ended, 0, watching.err())
  t.match(watching.out(), 'You went Right.')
  const again = await run(['attach', id, '--json'])
  const seqs = again.out
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as { kind: string; seq: number })
    .filter(({ kind }) => kind === 'frame')
    .map(({ seq }) => seq)
  t.same(
    seqs,
    seqs.map((_, at) => at + 1),
  )
})

t.test('a turn is stopped from another terminal', async t => {
  const { start, env, run } = await served(t)
  await start()
  const watching = going(t, ['run', 'say begun\nwait 60000\nsay never', '--conversation', 'c-stop'], { env })
  await watching.until(/begun/)
  t.same(await run(['stop', 'c-stop']), { code: 0, out: 'stopped c-stop\n', err: '' })
  t.equal(await watching.ended, 1)
  t.match(watching.out(), 'ended: stopped')
})

t.test('a token reaches the calls of its scope, and none once revoked', async t => {
  const { start, env, run } = await served(t)
  const { url } = await start()
  const token = (await run(['token', 'create', '--label', 'reader', '--scope', 'read', '--expires', '1h'])).out.trim()
  const asReader = { env: { ...env, SANDBOX_TOKEN: token, SANDBOX_URL: url } }
  t.equal((await run(['agents'], asReader)).code, 0)
  const refused = await run(['run', 'say x'], asReader)
  t.equal(refused.code, 5)
  t.match(refused.err, /^sandbox: .*(drive|land)/)
  const [, id] = /\n(\S+) +read /.exec((await run(['token', 'list'])).out)!
  t.equal((await run(['token', 'revoke', id!])).code, 0)
  t.equal((await run(['agents'], asReader)).code, 5)
  t.notMatch((await run(['token', 'list'])).out, 'reader')
})

t.test('a login link signs in once', async t => {
  const { start, run } = await served(t)
  const { url } = await start()
  const [, base, login] = /^(\S+)\/#login=(\S+)\n$/.exec((await run(['login'])).out)!
  t.equal(base, url)
  const opened = await createClient({ url }).call('POST /system/session', { login: login!, device: 'test' })
  t.match(opened, { role: 'owner', token: /^sbs_/ })
  await t.rejects(createClient({ url }).call('POST /system/session', { login: login!, device: 'test' }))
})

t.test("every call can be made by its name, including the kernel's own", async t => {
  const { start, run } = await served(t)
  await start()
  const document = JSON.parse((await run(['call', 'GET /openapi.json'])).out) as { paths: { [path: string]: object } }
  t.ok(document.paths['/agent/attach'])
  t.match((await run(['call', 'GET /reference'])).out, /<html/)
  t.match(JSON.parse((await run(['call', 'GET', '/info'])).out), { me: { role: 'owner' } })
  const started = JSON.parse(
    (await run(['call', 'POST /agent', 'prompt=say hi', 'conversationId=c-call', '--json'])).out,
  ) as { run: string }
  const events = (await run(['call', 'POST /agent/attach', 'conversationId=c-call'])).out
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as { kind: string; run?: string })
  t.equal(events[0]!.run, started.run)
  t.equal(events.at(-1)!.kind, 'end')
  const wrong = await run(['call', 'POST /agent', 'prompt:=5'])
  t.equal(wrong.code, 2)
  t.match(wrong.err, /^sandbox: prompt: expected text[^\n]*\n$/)
})

t.test('serve passes flags on, prints one message if it cannot start, and stops cleanly', async t => {
  const { start, run, workspace } = await served(t)
  const daemon = await start()
  const second = await run(['serve', '--workspace', workspace, '--port', '0'])
  t.equal(second.code, 1)
  t.match(second.err, /^sandbox: the data folder .* is in use by another daemon[^\n]*\n$/)
  t.equal(await daemon.end('SIGTERM'), 0)
  t.equal((await run(['agents'])).code, 3)
  const missing = await run(['serve', '--workspace', join(workspace, 'nowhere')])
  t.equal(missing.code, 2)
  t.match(missing.err, /^sandbox: the workspace .* cannot be read[^\n]*\n$/)
})

t.test('the sample shows a turn, its diff and its landing, answers its own question, and keeps running', async t => {
  const state = folderOf(t)
  const env = { XDG_STATE_HOME: state }
  const sample = going(t, ['serve', '--sample', '--port', '0'], { env })
  await sample.until(/What to do next:.*\/reference/s)
  t.match(
    sample.out(),
    /^the daemon runs at http:\S+\nworkspace \S+sandbox\/sample\/workspace\n\n\$ sandbox run "\/demo"\n/,
  )
  t.match(sample.out(), /no terminal, so the demonstration answers: Look at it\n/)
  t.match(
    sample.out(),
    /\$ sandbox diff c-\S+\nA sandbox-demo\.md .*\$ sandbox land c-\S+\nlanded: 1 file is in the workspace/s,
  )
  t.notMatch(sample.out() + sample.err(), /^\{/m, 'no line of the log as it is stored')
  t.notMatch(sample.out(), /#login=|\u001b/, 'no login link and no colours if the output is not a terminal')
  t.equal((await sandbox(['agents'], { env })).code, 0, 'a second terminal finds it')
  const workspace = join(state, 'sandbox', 'sample', 'workspace')
  t.equal(inGit(workspace, 'log', '--format=%an %s').trim().split('\n').length, 4)
  t.equal(inGit(workspace, 'status', '--short'), '?? sandbox-demo.md\n')
  const second = await sandbox(['serve', '--sample', '--port', '0'], { env })
  t.equal(second.code, 1)
  t.match(second.err, /^sandbox: the data folder .* is in use by another daemon[^\n]*\n$/)
  t.equal(await sample.end('SIGINT'), 0)

  const next = going(t, ['serve', '--sample', '--port', '0'], { env })
  await next.until(/What to do next:/)
  t.match(next.out(), 'landed: nothing was outstanding', 'the same sample is used again')
  t.equal(inGit(workspace, 'rev-list', '--count', 'HEAD'), '4\n')
})

t.test('with a given workspace the sample runs nothing, and a port in use is one message', async t => {
  const { start, run } = await served(t, ['--sample'])
  const daemon = await start()
  t.match((await run(['agents'])).out, 'no conversations yet')
  t.notMatch(daemon.out(), 'demo')
  const taken = createServer()
  await new Promise<void>(done => taken.listen(0, '127.0.0.1', done))
  t.teardown(() => taken.close())
  const { port } = taken.address() as { port: number }
  const state = join(realpathSync(t.testdirName), 'other')
  mkdirSync(state)
  const failed = await sandbox(['serve', '--sample', '--port', String(port)], { env: { XDG_STATE_HOME: state } })
  t.equal(failed.code, 1)
  t.match(failed.err, new RegExp(`sandbox: port ${port} of 127\\.0\\.0\\.1 is in use[^\\n]*\\n$`))
  t.equal(failed.out, '')
})
