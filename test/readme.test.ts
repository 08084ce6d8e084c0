import { spawn, execFile, type ChildProcess } from 'node:child_process'
import { mkdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import { makeWorkspace, root } from './support/daemon.js'

const project = dirname(root.replace(/\/$/, ''))
const readme = readFileSync(join(project, 'README.md'), 'utf8')

interface Ran {
  readonly code: number
  readonly out: string
}

/** The commands of the page in their order: a line that ends in a backslash goes on in the next. */
const commands = [...readme.matchAll(/^```(sh|console)\n([^]*?)^```/gm)].flatMap(([, kind, text]) => {
  if (kind === 'console') return [...text!.matchAll(/^\$ ([^]*?)(?=\n\S*[^|\n]*\n|\n```|$)/g)].length ? [transcriptCommand(text!)] : []
  return text!.replaceAll('\\\n', '').split('\n').filter(Boolean)
})

/** A transcript's command runs to the end of the line on which its quotes are closed. */
function transcriptCommand(text: string): string {
  const lines = text.replace(/^\$ /, '').split('\n')
  const end = lines.findIndex((_, at) => (lines.slice(0, at + 1).join('\n').match(/"/g)?.length ?? 0) % 2 === 0)
  return lines.slice(0, end + 1).join('\n')
}

t.test('every command of the README works, in the order of the page', async t => {
  const state = realpathSync(t.testdir())
  const folder = join(state, 'served')
  makeWorkspace(folder)
  mkdirSync(join(state, 'home'))
  const env: NodeJS.ProcessEnv = { ...process.env, XDG_STATE_HOME: state, SANDBOX_PORT: '0', NO_COLOR: '1' }
  delete env.SANDBOX_URL
  let url = ''
  const running = new Set<ChildProcess>()
  const stop = (child: ChildProcess) => process.kill(-child.pid!, 'SIGTERM')
  t.teardown(() => running.forEach(stop))

  const run = (command: string): Promise<Ran> =>
    new Promise(resolve => {
      execFile('bash', ['-c', command.replaceAll('http://127.0.0.1:8787', url)], { cwd: project, env, timeout: 60_000 }, (error, stdout, stderr) =>
        resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, out: stdout + stderr }))
    })

  /** Starts what stays up, and waits for the line that says so. */
  const start = (command: string, until: RegExp): Promise<string> =>
    new Promise((resolve, reject) => {
      const child = spawn('bash', ['-c', command], { cwd: project, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
      running.add(child)
      const lines: string[] = []
      createInterface({ input: child.stdout }).on('line', line => {
        lines.push(line)
        if (until.test(line)) resolve(lines.join('\n'))
      })
      child.stderr.on('data', text => lines.push(String(text)))
      child.once('exit', code => {
        running.delete(child)
        reject(new Error(`${command} ended with ${code}: ${lines.join('\n')}`))
      })
    })

  t.ok(commands.length >= 12, `${commands.length} commands`)
  for (const command of commands) {
    if (command === 'npm ci && npm test') {
      const ci = readFileSync(join(project, '.ci', 'run'), 'utf8')
      t.match(ci, /npm ci/, 'what CI runs is what the page says')
      t.match(ci, /npm (run )?test|npm test/, 'what CI runs is what the page says')
    } else if (command === 'npm ci && npm start') {
      const shown = await start('npm start', /npm start -- --workspace/)
      url = /http:\/\/127\.0\.0\.1:\d+/.exec(shown)![0]
      t.match(shown, /landed/, 'the demonstration ends with the landing')
    } else if (command === 'npm start -- --workspace DIR') {
      const shown = await start(command.replace('DIR', folder), /ready|runs at/)
      t.match(shown, /http:\/\/127\.0\.0\.1:\d+/)
      t.notMatch(shown, /demo/, 'a folder of yours is served and nothing runs')
    } else {
      const { code, out } = await run(`SANDBOX_URL=${url} ${command}`)
      t.equal(code, 0, `${command}\n${out}`)
      const token = /sbc_\S+/.exec(out)?.[0]
      if (token && command.includes('--scope land')) env.SANDBOX_TOKEN = token
      if (command.includes('--scope land')) delete env.UNUSED
    }
  }
})

t.test('the transcript of the README is what the program prints', async t => {
  t.match(readme, /<!-- transcript: run -->\n```console\n\$ npx sandbox run/)
})
