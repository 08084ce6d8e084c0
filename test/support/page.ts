import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { root } from './daemon.js'

/** The folder of the project. */
export const project = dirname(root.replace(/\/$/, ''))

/** The front page. */
export const readme = readFileSync(join(project, 'README.md'), 'utf8')

/** A command of the page; `prints` is what a transcript shows below it. */
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
/** Each command has a bash of its own: the variable that one sets is handed to the next. */
const EXPORTED = `printf '\\001%s' "$TOKEN"`

/** What `npx sandbox` starts, without npm, which takes longer than most commands. */
const DIRECTLY = `npx() { shift; '${process.execPath}' '${join(root, 'bundle', 'sdk', 'cli.js')}' "$@"; }`

/** A shell as the reader has one, with its own state and what it exported so far. */
export const shell = (t: Test, env: NodeJS.ProcessEnv) => {
  const up = new Set<ChildProcess>()
  let npmFindsIt = false
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
          ['-c', `set -e\n${npmFindsIt ? DIRECTLY : ''}\n${command}\n${EXPORTED}`],
          { cwd: project, env, timeout: 60_000 },
          (error, stdout, stderr) => {
            npmFindsIt ||= !error && command.includes('npx sandbox')
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
