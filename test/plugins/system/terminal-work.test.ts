import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { execFileSync } from 'node:child_process'
import t from 'tap'
import { scriptOf } from '../../../plugins/system/terminals/script.js'
import { exactly } from '../../support/lists.js'
import { endTerminals, folderOf } from '../../support/daemon.js'
import { endOf, shownIn, until } from '../workspace/projects-support.js'
import { withTerminals } from './terminals/terminals-support.js'

const ODD = [`it's`, '$(touch x)', '`touch x`', '-n', '"', '\\', '*', '', 'a\nb', '{{x}}', '%s', 'ü']

t.test('a script passes words to programs unchanged', async t => {
  const folder = join(folderOf(t), `it's "$(odd)" \\`)
  mkdirSync(folder)
  const script = scriptOf(
    [
      {
        folder,
        program: [process.execPath, '-p', 'JSON.stringify([process.cwd(), process.argv.slice(1)])', '--', ...ODD],
      },
    ],
    false,
  )
  for (const shell of ['sh', 'bash']) {
    const lines = execFileSync(shell, ['-c', script], { encoding: 'utf8' }).trim().split('\n')
    t.same(JSON.parse(lines.at(-1)!), [folder, ODD], shell)
  }
  const shown = scriptOf([{ folder, program: ['echo', '\x1b[31m\u202e'] }], false)
  t.notMatch(execFileSync('sh', ['-c', shown], { encoding: 'utf8' }).split('\n')[0], /[\x1b\u202e]/)
})

t.test('a script ends with the first failure, or goes on and keeps its code', async t => {
  const folder = folderOf(t)
  const steps = [
    ['sh', '-c', 'exit 3'],
    ['sh', '-c', 'echo second'],
  ].map(program => ({ folder, program }))
  const run = (goOn: boolean) => {
    try {
      return { code: 0, out: execFileSync('sh', ['-c', scriptOf(steps, goOn)], { encoding: 'utf8' }) }
    } catch (error) {
      const { status, stdout } = error as { status: number; stdout: string }
      return { code: status, out: stdout }
    }
  }
  t.match(run(false), { code: 3 })
  t.notMatch(run(false).out, /^second$/m)
  t.match(run(true), { code: 3, out: /^second$/m })
})

t.test('a group runs programs in a session, is notified when they end, and reads their output', async t => {
  const { client, data, kernel, workspace } = await withTerminals(t, {
    files: { 'docs/a.md': 'a', 'src/b.md': 'b' },
  })
  const ended: unknown[] = []
  kernel.events.on('terminal.ended', 'test', async (_, input) => ended.push((input as { data: object }).data))
  const call = <T>(name: string, input: object) =>
    kernel.calls.answer(name, input, {
      caller: { kind: 'plugin', actor: 'sandbox:workspace', role: 'owner' },
      signal: new AbortController().signal,
      trusted: true,
    }) as Promise<T>
  const start = (name: string, program: string[], more: object = {}) =>
    call<{ running: boolean; port?: number }>('terminals.start', {
      name,
      purpose: 'a test',
      steps: [{ cwd: 'docs', program }],
      ...more,
    })

  await t.test('with its variables and the port that it was asked for', async t => {
    const env = [{ name: 'GREETING', value: 'hello $HOME' }]
    t.match(
      await start(
        'panel-a',
        ['sh', '-c', 'echo "$GREETING" ghp_abcdefghijklmnopqrstuvwxyz0123456789; ls; sleep 1; exit 7'],
        { env, port: 4000 },
      ),
      { running: true, port: 4000 },
    )
    t.equal((await endOf(client, 'panel-a')).exitCode, 7)
    await until('the end is told', async () => ended.length > 0)
    t.same(ended.splice(0), [{ name: 'panel-a', purpose: 'a test', exitCode: 7 }])
    const { text } = await call<{ text: string }>('terminals.tail', { name: 'panel-a', lines: 50 })
    t.match(text, /hello \$HOME \[redacted\]\na\.md/)
    t.same(await call('terminals.tail', { name: 'panel-none', lines: 5 }), { text: '' })
  })

  await t.test('a running process is returned, and another purpose is refused', async t => {
    const lines = ['sh', '-c', 'trap "echo bye > ../bye.txt; exit 0" TERM; while :; do sleep 0.1; done']
    await start('panel-b', lines)
    t.match(await start('panel-b', ['false']), { running: true })
    await t.rejects(start('panel-b', ['false'], { purpose: 'another' }), { message: /runs something else \(a test\)/ })
    await until('it traps', async () => /\$ sh/.test(await shownIn(client, 'panel-b')))
    await call('terminals.stop', { name: 'panel-b' })
    t.equal(readFileSync(join(workspace, 'bye.txt'), 'utf8'), 'bye\n', 'it ended in its own time')
    t.match(ended.splice(0), exactly({ name: 'panel-b', purpose: 'a test' }))
    t.same(await call('terminals.stop', { name: 'panel-b' }), { ok: true })
  })

  await t.test('it sees the folders that it is kept to, and a folder outside the workspace is refused', async t => {
    await start('panel-c', ['sh', '-c', 'ls ..'], { only: [{ path: 'docs', access: 'read' }] })
    t.equal((await endOf(client, 'panel-c')).exitCode, 0)
    t.match(await shownIn(client, 'panel-c'), /^docs$/m)
    t.notMatch(await shownIn(client, 'panel-c'), /^src$/m)
    await t.rejects(start('panel-d', ['ls'], { steps: [{ cwd: '../data', program: ['ls'] }] }))
    const { sessions } = await call<{ sessions: object[] }>('terminals.running', {})
    t.match(sessions, exactly({ name: 'panel-a', running: false }, { name: 'panel-c', running: false }))
  })

  await t.test('it ends when the program that holds its terminal is killed', async t => {
    const seconds = `${86_400 + process.pid}`
    const runs = () =>
      execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).split('\n').includes(`sleep ${seconds}`)
    await start('panel-e', ['sleep', seconds])
    await until('it runs', async () => runs())
    endTerminals(data)
    await until('it has ended', async () => !runs())
    t.pass('the system says that it is gone')
  })
})
