import { join } from 'node:path'
import pty from '@lydell/node-pty'
import t, { type Test } from 'tap'
import { endTerminals, folderOf, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { PATH, PROGRAM, sandbox } from './cli-process.js'

const started = async (t: Test) => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace, { 'sub/a.txt': 'a\n' })
  t.teardown(() => endTerminals(where.data))
  return spawnDaemon(t, where)
}

/** The client in its own terminal. */
const person = (t: Test, data: string, args: string[], size = { cols: 90, rows: 20 }) => {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name, value]) => value !== undefined && !/^(CI|NO_COLOR|SANDBOX_)/.test(name)),
  ) as { [name: string]: string }
  const child = pty.spawn(process.execPath, [PROGRAM, 'terminal', ...args, '--data', data], {
    name: 'xterm-256color',
    ...size,
    cwd: '/',
    env: { ...env, PATH },
  })
  let text = ''
  let wake = () => {}
  child.onData(said => {
    text += said
    wake()
  })
  const exit = new Promise<number>(resolve => child.onExit(({ exitCode }) => resolve(exitCode)))
  t.teardown(() => void child.kill('SIGKILL'))
  return {
    child,
    exit,
    shows: async (pattern: RegExp) => {
      const limit = setTimeout(() => wake(), 60_000)
      const end = performance.now() + 60_000
      while (!pattern.test(text)) {
        if (performance.now() >= end) throw new Error(`expected ${String(pattern)} within a minute, found ${text}`)
        await new Promise<void>(resolve => (wake = resolve))
      }
      clearTimeout(limit)
      return text
    },
  }
}

t.test('a person works in a terminal, detaches, reattaches, and the client exits with its exit code', async t => {
  const { data, client } = await started(t)
  const one = person(t, data, ['build', '--cwd', 'sub'])
  await one.shows(/attached to web-build; Ctrl-\] detaches/)
  one.child.write('while [ "$(stty size)" != "20 90" ]; do sleep 0.05; done; cat a.txt; echo si""zed\r')
  await one.shows(/a\r+\nsized/)
  one.child.resize(70, 15)
  // The program says so itself: only then does the terminal send the interrupt to it, and not to the shell.
  one.child.write(
    'while [ "$(stty size)" != "15 70" ]; do sleep 0.05; done; sh -c "echo re\'\'sized; exec sleep 3571"\r',
  )
  await one.shows(/resized/)
  one.child.write('\x03echo inter""rupted\r')
  await one.shows(/interrupted/)
  one.child.write('\x1d')
  t.equal(await one.exit, 0)
  await one.shows(/detached; sandbox terminal web-build attaches again/)
  t.match((await client.call('GET /system/terminals')).sessions, exactly({ name: 'web-build', running: true }))

  const two = person(t, data, ['web-build'])
  await two.shows(/interrupted/)
  two.child.write('exit 7\r')
  t.equal(await two.exit, 7)
  await two.shows(/web-build ended with 7/)
})

t.test('terminals are listed and closed, and none is opened without a terminal', async t => {
  const { data, client } = await started(t)
  const run = (...args: string[]) => sandbox(['terminal', ...args, '--data', data])
  t.match(await run('list'), { code: 0, out: /^no terminals/ })
  await client.call('POST /system/terminals', { name: 'web-a', label: 'mine' })
  t.match(await run('list'), { code: 0, out: /^NAME +STATE .*\nweb-a +running +0 .* mine\n$/ })
  t.match(JSON.parse((await run('list', '--json')).out), { sessions: exactly({ name: 'web-a', label: 'mine' }) })
  t.match(await run(), { code: 0, out: /^NAME / })
  for (const what of ['a', 'open']) t.match(await run(what), { code: 2, err: /expected a person at a terminal/ })
  t.match(await run('close'), { code: 2, err: /terminal close NAME/ })
  t.match(await run('open', 'x'), { code: 2 })
  t.same(await run('close', 'nope'), {
    code: 5,
    out: '',
    err: 'sandbox: no terminal is called web-nope; sandbox terminal list shows them\n',
  })
  t.match(await run('close', 'a'), { code: 0, out: 'closed web-a\n' })
  t.same((await client.call('GET /system/terminals')).sessions, [])
})
