import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { root } from '../daemon.js'

/** The folder of the project. */
export const project = dirname(root.replace(/\/$/, ''))

/** The text of README.md. */
export const readme = readFileSync(join(project, 'README.md'), 'utf8')

/** A command of the page; `prints` is its output as the page shows it. */
export interface ShownCommand {
  readonly command: string
  readonly prints?: string
}

/**
 * In an `sh` block every line is a command; in a `console` block a command follows `$ ` and ends where its quotes
 * close.
 */
export const shownIn = (page: string): ShownCommand[] =>
  [...page.matchAll(/^```(sh|console)\n([^]*?)^```/gm)].flatMap(([, kind, text = '']): ShownCommand[] => {
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
/** Each command runs in its own bash: the variables that one sets are passed to the next. */
const EXPORTED = `printf '\\001%s' "$TOKEN"`

/** What `npx sandbox` starts, without npm, which takes longer than most commands. */
const DIRECTLY = `npx() { shift; '${process.execPath}' '${join(root, 'bundle', 'sdk', 'cli.js')}' "$@"; }`

/** A shell like a reader's, with its working directory and exported variables. */
export const shell = (t: Test, env: NodeJS.ProcessEnv) => {
  const up = new Set<ChildProcess>()
  let npmFindsIt = false
  t.teardown(async () => {
    for (const child of up) {
      process.kill(-child.pid!, 'SIGTERM')
      // Not its exit: its child processes may still be running.
      await once(child, 'close')
    }
  })
  return {
    run: (command: string): Promise<{ code: unknown; out: string }> =>
      new Promise(resolve => {
        execFile(
          'bash',
          ['-c', `set -e\n${npmFindsIt ? DIRECTLY : ''}\n${command}\n${EXPORTED}`],
          { cwd: project, env, timeout: 60_000 },
          (error, stdout, stderr) => {
            npmFindsIt ||= !error && command.includes('npx sandbox')
            const [out = '', token = ''] = stdout.split(MARK)
            env.TOKEN = token
            resolve({ code: error ? (error.code ?? error.signal) : 0, out: out + (error ? stderr : '') })
          },
        )
      }),
    /** Starts a program that keeps running, and waits for the line that says it is ready. */
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
