import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  globSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import type { Test } from 'tap'

const NOBODY = 65534
const SUPERUSER = process.getuid?.() === 0
/** What compiles: an ordinary machine has none of it. */
const COMPILERS = /^(?:[\w-]*-)?(?:cc|c\+\+|gcc|g\+\+|cpp|clang|clang\+\+|ld|as|make|gmake|cmake|python3?)(?:[-.\d]*)$/
const LONGEST_MS = 240_000

/** The result of a command: its exit code, all that it printed in order, and its standard output alone. */
export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly stdout: string
}

/** A machine as a new user of the program finds it: an ordinary user with an empty home folder, and no compiler. */
export interface Place {
  readonly home: string
  /** An empty folder in it. */
  readonly folder: string
  /** Gives the user a file. */
  give(path: string, text: string, mode?: number): string
  /** Runs commands in a shell until they end. */
  run(command: string, cwd?: string): Promise<Ended>
  /** Starts a program that goes on; `until` waits for what it prints, `end` stops it as Ctrl-C does. */
  start(command: string, cwd?: string): Started
}

export interface Started {
  until(fits: RegExp): Promise<RegExpExecArray>
  end(): Promise<Ended>
}

/** What the user finds first: the Node that runs the tests, and in place of each compiler of this machine nothing. */
const programsIn = (folder: string): void => {
  for (const file of globSync('{/usr/local/bin,/usr/bin,/bin}/*'))
    if (COMPILERS.test(basename(file)))
      writeFileSync(join(folder, basename(file)), '#!/bin/sh\necho "$0: not found" >&2\nexit 127\n', { mode: 0o755 })
  // Not a link to it: the user may not enter the folder where it lies.
  const node = join(folder, 'node')
  try {
    linkSync(process.execPath, node)
  } catch {
    copyFileSync(process.execPath, node)
  }
  chmodSync(node, 0o755)
}

/** Where people's folders lie: a folder that everybody may write to is no place for programs. */
const homes = (): string => {
  if (!SUPERUSER) return homedir()
  mkdirSync('/home', { recursive: true })
  return '/home'
}

/** Makes such a machine among the home folders, which is gone after the test; what it starts is ended. */
export const ordinaryPlace = (t: Pick<Test, 'teardown'>, registry: string): Place => {
  const top = realpathSync(mkdtempSync(join(homes(), 'shipped-')))
  const [bin, home, folder] = [join(top, 'bin'), join(top, 'home'), join(top, 'home/work')] as const
  chmodSync(top, 0o755)
  for (const made of [bin, home, folder]) mkdirSync(made)
  programsIn(bin)
  const ids = SUPERUSER ? { uid: NOBODY, gid: NOBODY } : {}
  const owned = (path: string) => SUPERUSER && chownSync(path, NOBODY, NOBODY)
  for (const made of [home, folder]) owned(made)
  const env = {
    HOME: home,
    PATH: `${home}/.local/bin:${bin}:/usr/local/bin:/usr/bin:/bin`,
    LANG: 'C.UTF-8',
    NO_COLOR: '1',
    npm_config_prefix: join(home, '.local'),
    npm_config_registry: registry,
    npm_config_update_notifier: 'false',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    GIT_AUTHOR_NAME: 'Ada',
    GIT_AUTHOR_EMAIL: 'ada@example.org',
    GIT_COMMITTER_NAME: 'Ada',
    GIT_COMMITTER_EMAIL: 'ada@example.org',
  }
  const up = new Set<ChildProcess>()
  t.teardown(async () => {
    for (const child of up) {
      process.kill(-child.pid!, 'SIGKILL')
      await once(child, 'close')
    }
    rmSync(top, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  })
  const begin = (command: string, cwd: string) => {
    const child = spawn('/bin/bash', ['-c', command], {
      ...{ cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] },
      ...ids,
    })
    up.add(child)
    let [out, stdout] = ['', '']
    const heard = new Set<() => void>()
    for (const stream of [child.stdout!, child.stderr!])
      stream.setEncoding('utf8').on('data', (text: string) => {
        out += text
        if (stream === child.stdout) stdout += text
        for (const listen of heard) listen()
      })
    const closed = once(child, 'close').then(([code]): Ended => {
      up.delete(child)
      return { code: code as number | null, out, stdout }
    })
    return { child, closed, heard, printed: () => out }
  }
  return {
    home,
    folder,
    give: (path, text, mode = 0o644) => {
      const file = join(home, path)
      execFileSync('mkdir', ['-p', dirname(file)], ids)
      writeFileSync(file, text, { mode })
      owned(file)
      return file
    },
    run: async (command, cwd = folder) => {
      const { child, closed } = begin(command, cwd)
      const late = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), LONGEST_MS)
      const ended = await closed
      clearTimeout(late)
      return ended.code === null ? { ...ended, out: `${ended.out}\nended after ${LONGEST_MS} ms` } : ended
    },
    start: (command, cwd = folder) => {
      const { child, closed, heard, printed } = begin(`exec ${command}`, cwd)
      return {
        until: fits =>
          new Promise((resolve, reject) => {
            const listen = () => {
              const found = fits.exec(printed())
              if (!found) return
              heard.delete(listen)
              resolve(found)
            }
            heard.add(listen)
            void closed.then(({ code, out }) =>
              reject(new Error(`${command} ended with ${code} before it printed ${fits}: ${out}`)),
            )
            listen()
          }),
        end: () => {
          child.kill('SIGINT')
          return closed
        },
      }
    },
  }
}
