import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pty from '@lydell/node-pty'
import t, { type Test } from 'tap'
import { VERBS } from '../../../sdk/cli/program.js'
import { folderOf, makeWorkspace } from '../../support/daemon.js'
import { inTime } from '../../support/in-time.js'
import { going, PATH, sandbox, sandboxProcess } from './cli-process.js'

const { Terminal } = createRequire(import.meta.url)('@xterm/headless') as typeof import('@xterm/headless')

const has = (shell: string): boolean => !spawnSync(shell, ['-c', 'true']).error
const needs = (shell: string) => ({ skip: !has(shell) && `the program ${shell} is missing: apt-get install ${shell}` })

/** A folder with the script of a shell, and the environment of a person without a daemon. */
const scripted = async (t: Test, shell: string) => {
  const folder = folderOf(t)
  mkdirSync(join(folder, 'home'))
  const file = join(folder, shell === 'zsh' ? '_sandbox' : `sandbox.${shell}`)
  writeFileSync(file, (await sandbox(['completion', shell])).out)
  return {
    folder,
    file,
    env: { PATH, HOME: join(folder, 'home'), XDG_STATE_HOME: folder, TERM: 'xterm', LANG: 'C.UTF-8' },
  }
}
type Scripted = Awaited<ReturnType<typeof scripted>>

const ran = (program: string, args: readonly string[], env: Scripted['env'], cwd: string): Promise<string[]> =>
  new Promise((resolve, reject) => {
    execFile(program, args, { encoding: 'utf8', env, cwd }, (error, out) =>
      error ? reject(error) : resolve(out.split('\n').filter(Boolean)),
    )
  })

const IN_BASH = `source "$0"; COMP_WORDS=(sandbox "$@"); COMP_CWORD=$#; _sandbox; printf '%s\\n' "\${COMPREPLY[@]}"`
const inBash = ({ file, env, folder }: Scripted, ...words: string[]): Promise<string[]> =>
  ran('bash', ['--noprofile', '--norc', '-uc', IN_BASH, file, ...words], env, folder)

const inFish = async ({ file, env, folder }: Scripted, line: string): Promise<string[]> =>
  (await ran('fish', ['-c', `source ${file}; complete -C "sandbox ${line}"`], env, folder)).map(
    found => found.split('\t')[0]!,
  )

/** Tries again while a busy machine answers too late: completion then says nothing, and a person tries again. */
const tried = async (work: () => Promise<void>, times = 10): Promise<void> => {
  for (let left = times; ; left--) {
    try {
      return await work()
    } catch (error) {
      if (left <= 1) throw error
    }
  }
}

/** Compares what is completed with the daemon's help. */
const offers = (t: Test, complete: () => Promise<string[]>, expected: readonly string[]): Promise<void> =>
  tried(async () => assert.deepEqual(await complete(), expected)).then(
    () => void t.pass(expected.join(' ')),
    (error: Error) => void t.fail(error.message),
  )

/** What a person does in zsh: types the words and two tabs, until a line is on the screen. */
const inZsh = async ({ folder, env }: Scripted, words: string, until: RegExp): Promise<void> => {
  const shell = pty.spawn('zsh', ['-f'], { cols: 120, rows: 40, cwd: folder, env: { ...env, PS1: 'ready> ' } })
  const screen = new Terminal({ cols: 120, rows: 40, allowProposedApi: true })
  const heard = new Set<() => void>()
  shell.onData(said => screen.write(said, () => heard.forEach(listen => listen())))
  const shown = () =>
    Array.from({ length: 40 }, (_, at) => screen.buffer.active.getLine(at)?.translateToString(true) ?? '')
      .join('\n')
      .trim()
  const shows = (pattern: RegExp, most = 60_000) =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`zsh shows no ${pattern}: ${shown()}`)), most)
      const listen = () => {
        if (!pattern.test(shown())) return
        clearTimeout(timer)
        heard.delete(listen)
        resolve()
      }
      heard.add(listen)
      listen()
    })
  try {
    await shows(/ready>$/)
    shell.write(`fpath=(${folder} $fpath); autoload -U compinit; compinit -u -D; PS1='loaded> '\r`)
    await shows(/loaded>$/)
    shell.write(`sandbox ${words}\t`)
    await tried(async () => {
      shell.write('\t')
      await shows(until, 3000)
    })
  } finally {
    shell.kill('SIGKILL')
  }
}

/** A daemon with a conversation, found by the environment of a shell. */
const served = async (t: Test, { folder, env }: Scripted) => {
  const workspace = join(folder, 'workspace')
  makeWorkspace(workspace)
  const daemon = going(t, ['serve', '--workspace', workspace, '--port', '0'], { env })
  await daemon.until(/ready at/)
  t.equal((await sandbox(['run', 'say hi', '--shared', '--conversation', 'c-first'], { env })).code, 0)
  t.equal((await sandbox(['secrets', 'set-store', 'vault', '--unlock', 'file'], { env })).code, 0)
  t.equal((await sandbox(['secret', 'set', 'API_TOKEN'], { env, input: 'x' })).code, 0)
}

t.test('bash completes verbs, groups, options and their values without a daemon', async t => {
  const shell = await scripted(t, 'bash')
  const complete = (...words: string[]) => inBash(shell, ...words)
  t.same(await complete('tr'), ['transcript'])
  t.match(await complete('lo'), /login.*logs.*loops/s)
  t.same(await complete('run', '--mo'), ['--model', '--mode'])
  t.same(await complete('run', '--mode', 'p'), ['plan'])
  t.same(await complete('token', 'c'), ['create'])
  t.same(await complete('loops', 'res'), ['resume'], 'a verb of a group, which its table names')
  t.same(await complete('--json', '--url', 'http://x', 'member', ''), [], 'no verb has this name')
  t.same(await complete('--json', '--url', 'http://x', 'members', 'in'), ['invite'])
  t.match(await complete('run', '--attach', ''), /sandbox\.bash/, 'names of files')
  t.same(await complete('diff', ''), [], 'no daemon, no ids, no error')
})

t.test('bash completes the ids of what the daemon has', async t => {
  const shell = await scripted(t, 'bash')
  await served(t, shell)
  const complete = (...words: string[]) => inBash(shell, ...words)
  await offers(t, () => complete('diff', 'c-'), ['c-first'])
  await offers(t, () => complete('agents', 'get', ''), ['c-first'])
  await offers(t, () => complete('loops', 'get', ''), ['c-first'])
  await offers(t, () => complete('secret', 'remove', ''), ['API_TOKEN'])
  await offers(t, () => complete('secrets', 'remove', 'A'), ['API_TOKEN'])
  await offers(t, () => complete('loops', 'list', '--state', 'run'), ['running'])
  await tried(async () => assert.match((await complete('loops', 'start', '--')).join(' '), /--check.*--rounds/))
  await offers(t, () => complete('skills', 'set-enabled', 'subagents', 'o'), ['on', 'off'])
})

t.test('fish completes verbs and ids', needs('fish'), async t => {
  const shell = await scripted(t, 'fish')
  t.same(await inFish(shell, 'transc'), ['transcript'])
  t.same(await inFish(shell, 'run --mode p'), ['plan'])
  t.same(await inFish(shell, 'diff '), [])
  await served(t, shell)
  await offers(t, () => inFish(shell, 'diff '), ['c-first'])
  await offers(t, () => inFish(shell, 'secrets remove '), ['API_TOKEN'])
})

t.test('zsh completes verbs and ids', needs('zsh'), async t => {
  const shell = await scripted(t, 'zsh')
  await inZsh(shell, 'transc', /loaded> sandbox transcript/)
  await inZsh(shell, 'run --mode p', /loaded> sandbox run --mode plan/)
  await served(t, shell)
  await inZsh(shell, 'diff ', /loaded> sandbox diff c-first/)
  await inZsh(shell, 'secrets remove ', /loaded> sandbox secrets remove API_TOKEN/)
  t.pass('each was on the screen')
})

t.test('what a verb takes is completed: all its options', async t => {
  for (const { name, flags, hidden } of VERBS) {
    if (hidden) continue
    const { code, out } = await sandbox(['__complete', name, '--'])
    t.equal(code, 0)
    const offered = out.split('\n').map(line => line.split('\t')[0])
    for (const [flag, its] of Object.entries(flags))
      if (!its.hidden) t.ok(offered.includes(`--${flag}`), `${name} --${flag}`)
  }
})

t.test('a daemon that does not answer holds a completion back for 300 ms', async t => {
  const shell = await scripted(t, 'bash')
  const { createServer } = await import('node:net')
  const server = createServer(() => {})
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  const started = performance.now()
  const { code, out, err } = await sandboxProcess(
    ['__complete', '--url', `http://127.0.0.1:${port}`, 'loops', 'get', ''],
    { env: { ...shell.env, SANDBOX_COMPLETION_MS: '300' } },
  )
  t.same({ code, out, err }, { code: 0, out: '', err: '' })
  t.ok(inTime(started, 1500))
})

t.test('every script is parsed by its shell', async t => {
  for (const shell of ['bash', 'zsh', 'fish'].filter(has)) {
    const { file } = await scripted(t, shell)
    t.equal(spawnSync(shell, ['-n', file], { encoding: 'utf8' }).stderr, '', shell)
  }
  t.same(await sandbox(['completion', 'tcsh']), {
    code: 2,
    out: '',
    err: 'sandbox: expected completion bash, zsh or fish, found tcsh\n',
  })
})
