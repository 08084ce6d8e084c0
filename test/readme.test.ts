import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { folderOf, makeWorkspace, root } from './support/daemon.js'

const project = dirname(root.replace(/\/$/, ''))
const readme = readFileSync(join(project, 'README.md'), 'utf8')

/** A command of the page; `prints` is what a transcript shows below it. */
interface Shown {
  readonly command: string
  readonly prints?: string
}

/**
 * In an `sh` block every line is a command; in a `console` block a command follows `$ ` and ends where its quotes
 * close.
 */
const shownIn = (page: string): Shown[] =>
  [...page.matchAll(/^```(sh|console)\n([^]*?)^```/gm)].flatMap(([, kind, text = '']): Shown[] => {
    if (kind === 'sh')
      return text
        .replaceAll('\\\n', '')
        .split('\n')
        .filter(Boolean)
        .map(command => ({ command }))
    return text
      .split(/^\$ /m)
      .filter(Boolean)
      .map(part => {
        const lines = part.split('\n')
        const end = lines.findIndex(
          (_, at) =>
            (lines
              .slice(0, at + 1)
              .join('')
              .split('"').length
              - 1)
              % 2
            === 0,
        )
        return { command: lines.slice(0, end + 1).join('\n'), prints: lines.slice(end + 1).join('\n') }
      })
  })

const MARK = '\u0001'
/** Each command has a bash of its own: the variable that one sets is handed to the next. */
const EXPORTED = `printf '\\001%s' "$TOKEN"`

/** A shell as the reader has one, with its own state and what it exported so far. */
const shell = (t: Test, env: NodeJS.ProcessEnv) => {
  const up = new Set<ChildProcess>()
  t.teardown(async () => {
    for (const child of up) {
      process.kill(-child.pid!, 'SIGTERM')
      // Not its exit: what it started may still be at work.
      await once(child, 'close')
    }
  })
  return {
    run: (command: string): Promise<{ code: unknown; out: string }> =>
      new Promise(resolve => {
        execFile(
          'bash',
          ['-c', `set -e\n${command}\n${EXPORTED}`],
          { cwd: project, env, timeout: 60_000 },
          (error, stdout, stderr) => {
            const [out = '', token = ''] = stdout.split(MARK)
            env.TOKEN = token
            resolve({ code: error?.code ?? 0, out: out + (error ? stderr : '') })
          },
        )
      }),
    /** Starts what stays up, and waits for the line that says that it is. */
    start: (command: string, until: RegExp): Promise<string> =>
      new Promise((resolve, reject) => {
        const child = spawn('bash', ['-c', command], {
          cwd: project,
          env,
          detached: true,
          stdio: ['ignore', 'pipe', 'pipe'],
        })
        up.add(child)
        const lines: string[] = []
        createInterface({ input: child.stdout }).on('line', line => {
          lines.push(line)
          if (until.test(line)) resolve(lines.join('\n'))
        })
        child.stderr.on('data', text => lines.push(String(text)))
        child.once('exit', code => {
          up.delete(child)
          reject(new Error(`${command} ended with ${code}: ${lines.join('\n')}`))
        })
      }),
  }
}

t.setTimeout(180_000)

t.test('every command of the README works as written, in the order of the page', async t => {
  const state = folderOf(t)
  makeWorkspace(join(state, 'served'))
  const env: NodeJS.ProcessEnv = { ...process.env, XDG_STATE_HOME: state, SANDBOX_PORT: '0', NO_COLOR: '1' }
  for (const name of ['SANDBOX_URL', 'SANDBOX_TOKEN', 'SANDBOX_DATA', 'SANDBOX_WORKSPACE']) delete env[name]
  const { run, start } = shell(t, env)
  const shown = shownIn(readme)
  t.ok(shown.length >= 15, `${shown.length} commands`)
  for (const { command, prints } of shown) {
    if (command === 'npm ci && npm test') {
      const ci = readFileSync(join(project, '.ci', 'run'), 'utf8')
      t.match(ci, /npm ci/, 'CI installs as the page says')
      t.match(ci, /npm test/, 'CI tests as the page says')
    } else if (command === 'npm ci && npm start') {
      const said = await start('npm start', /npm start -- --workspace/)
      env.SANDBOX_URL = /http:\/\/127\.0\.0\.1:\d+/.exec(said)![0]
      t.match(said, /\nlanded: 1 file is in the workspace/, 'the main job is shown, to the landing')
    } else if (command === 'npm start -- --workspace DIR') {
      const said = await start(command.replace('DIR', join(state, 'served')), /ready at/)
      t.notMatch(said, /demo/, 'a folder of yours is served and nothing runs')
    } else {
      // The demonstration asks a question; without a terminal here, another client answers it.
      const asks = command.includes('"/demo"')
      const running = run(
        `${command.replaceAll('http://127.0.0.1:8787', env.SANDBOX_URL!)}${asks ? ' --timeout 2m' : ''}`,
      )
      if (asks) while ((await run('npx sandbox answer first 1')).code !== 0) await delay(200)
      const { code, out } = await running
      t.equal(code, 0, `${command}\n${out}`)
      if (prints !== undefined) t.equal(out, prints, `${command}: what the page shows`)
    }
  }
})
