import { spawn } from 'node:child_process'
import { watch, type FSWatcher } from 'node:fs'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { needProgram, ownEnv, run, type Env, type RunResult } from '../../../sdk/node/programs/run.js'
import {
  MOST_TEXT,
  type Backend,
  type Feed,
  type History,
  type TerminalListener,
  type Opening,
  type Session,
  type ShellCommand,
} from './backend.js'
import type { OpenCapture } from './capture.js'
import { ControlClient, quotedForTmux } from './control-client.js'
import { inShell } from './pipe.js'
import { bytesReadBy, endTerminal, foreground } from './processes.js'
import { TmuxCaptures } from './tmux-captures.js'
import { argsOf, piping, target, typing } from './tmux-commands.js'
import { TmuxFeed } from './tmux-feed.js'
import { PANE_FIELDS, rowOf, SESSION_NAME, type AboutSession, type TmuxRow } from './tmux-rows.js'
import { ignored } from '../../../sdk/index.js'

/** Options of the tmux backend. */
export interface TmuxOptions {
  /** The program's path. */
  readonly program: string
  /** A folder of this user alone, for the sockets. */
  readonly folder: string
  readonly shell: (opening: Opening) => Promise<ShellCommand>
  /** Called when a program has ended. */
  readonly changed: () => void
  readonly capture: OpenCapture
  /** Called when a terminal has no log. */
  readonly uncaptured: (error: unknown) => void
}

/** Rewritten whenever a program has ended. */
const DIED = 'died'
const HISTORY = 100_000
const PATIENCE = 20_000

const SETTINGS = [
  '-g remain-on-exit on',
  '-g status off',
  '-g automatic-rename off',
  '-g allow-rename off',
  '-g update-environment ""',
  '-g default-terminal xterm-256color',
  `-g history-limit ${HISTORY}`,
  '-g set-titles off',
  '-g prefix None',
  '-g focus-events off',
].map(setting => `set-option ${setting}`)

/**
 * Terminals as sessions of tmux, each with its own server: they outlive the daemon.
 *
 * A server slows a program down for a slow client only if no other client is attached to the server, in any session.
 */
export class Tmux implements Backend {
  readonly #options: TmuxOptions
  readonly #captures: TmuxCaptures
  #watcher: FSWatcher | undefined
  #closed = false

  constructor(options: TmuxOptions) {
    this.#options = options
    const { folder, capture, uncaptured } = options
    this.#captures = new TmuxCaptures({
      folder,
      open: capture,
      failed: uncaptured,
      broken: name => void this.#capture(name, 'output from just before may be missing').catch(uncaptured),
    })
  }

  async list(): Promise<Session[]> {
    const rows = await Promise.all((await this.#names()).map(name => this.#row(name)))
    return rows.flatMap(row => {
      if (!row) return []
      const { leader, server, closed, ...session } = row
      return [{ ...session, ...(session.running && { pid: leader, ...foreground(leader) }) }]
    })
  }

  async open(opening: Opening): Promise<void> {
    const { folder } = this.#options
    const { name, cols, rows, label, opened, typed, work } = opening
    await mkdir(folder, { recursive: true, mode: 0o700 })
    this.#watch()
    const { program, args, env } = await this.#options.shell(opening)
    const piped = await this.#captures.begin(name, opening, 'the terminal begins')
    const about: AboutSession = {
      ...(label !== undefined && { label }),
      ...(opened !== undefined && { opened }),
      ...(work && { work }),
    }
    const environment = Object.entries(env).flatMap(([key, value]) => ['-e', quotedForTmux(`${key}=${value}`)])
    const words = [
      await needProgram('env'),
      '-u',
      'TMUX',
      '-u',
      'TMUX_PANE',
      '-u',
      'TERM_PROGRAM',
      '-u',
      'TERM_PROGRAM_VERSION',
      program,
      ...args,
    ]
    // tmux does not notify clients of what a hook does itself, only of commands that the hook runs later.
    const hooks = [
      'run-shell -b -C "rename-window -t \'#{hook_pane}\' dead"',
      `run-shell -b ${quotedForTmux(`: > ${inShell(join(folder, DIED)).replaceAll('#', '##')}`)}`,
    ]
    const script = [
      ...SETTINGS,
      ...hooks.map(hook => `set-hook -ga pane-died ${quotedForTmux(hook)}`),
      [
        'new-session -d -s',
        name,
        '-x',
        cols,
        '-y',
        rows,
        '-c /',
        ...environment,
        '--',
        ...words.map(quotedForTmux),
      ].join(' '),
      ...(piped === undefined ? [] : [['pipe-pane', ...piping(name, piped).map(quotedForTmux)].join(' ')]),
      `set-option -t ${target(name)} @about ${Buffer.from(JSON.stringify(about)).toString('base64url')}`,
      `resize-window -t ${target(name)} -x ${cols} -y ${rows}`,
      ...(typed === undefined ? [] : typing(name, `${typed}\r`)),
    ]
    // Commands go in as input: as arguments they could be too long.
    const { code, stdout, stderr } = await this.#run(
      name,
      ['start-server', ';', 'source-file', '-'],
      `${script.join('\n')}\n`,
    )
    if (code !== 0) {
      await this.#captures.end(name)
      throw new Error(`tmux did not open ${name}: ${stderr}${stdout}`)
    }
    // If the exit code is unknown, a line on the screen says that the program has ended.
    await this.#run(name, ['set-option', '-g', 'remain-on-exit-format', ''])
  }

  async follow(name: string, listener: TerminalListener): Promise<Feed | undefined> {
    const row = await this.#row(name)
    if (!row) return undefined
    const place = await this.#place()
    return new TmuxFeed(
      name,
      listener,
      size => this.#captures.resize(name, size),
      events => {
        const client = spawn(this.#options.program, [...argsOf(name), '-C', 'attach-session', '-t', `=${name}`], {
          ...place,
          detached: true,
          stdio: 'pipe',
        })
        return new ControlClient(client, events, () => bytesReadBy(row.server))
      },
    )
  }

  async kill(name: string, signal?: 'SIGHUP' | 'SIGTERM'): Promise<void> {
    const found = await this.#row(name)
    if (found?.running) await endTerminal(found.leader, signal)
    if (found) await this.#run(name, ['kill-server'])
    await this.#captures.end(name)
    await rm(join(this.#options.folder, name), { force: true })
  }

  async history(name: string, lines: number): Promise<History | undefined> {
    const args = [
      'capture-pane',
      '-p',
      '-J',
      '-S',
      `-${lines}`,
      '-t',
      target(name),
      ';',
      'display-message',
      '-p',
      '-t',
      target(name),
      '#{history_size}',
    ]
    const { code, stdout } = await this.#run(name, args)
    if (code !== 0) return undefined
    const text = stdout.toString()
    const end = text.lastIndexOf('\n', text.length - 2)
    const kept = Number(text.slice(end + 1))
    return {
      lines: text
        .slice(0, Math.max(end, 0))
        .split('\n')
        .map(line => line.trimEnd()),
      more: kept > lines || kept >= HISTORY,
    }
  }

  async resume(): Promise<void> {
    for (const name of await this.#names())
      await this.#capture(name, 'the daemon restarted: output from the meantime is missing here')
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#watcher?.close()
    await this.#captures.close()
  }

  async #names(): Promise<string[]> {
    const names = (await readdir(this.#options.folder).catch(() => [] as string[])).filter(name =>
      SESSION_NAME.test(name),
    )
    if (names.length) this.#watch()
    return names
  }

  /** Resumes the log of a running program. */
  async #capture(name: string, note: string): Promise<void> {
    const row = await this.#row(name)
    if (!row?.running || this.#captures.names.includes(name)) return
    const command = await this.#captures.begin(name, row, note)
    if (command !== undefined) await this.#run(name, ['pipe-pane', ...piping(name, command)])
  }

  /** Ended programs write nothing more, but tmux keeps their pipes. */
  async #endCaptures(): Promise<void> {
    for (const name of this.#captures.names) {
      const row = await this.#row(name)
      if (row && !row.running) await this.#captures.end(name)
    }
  }

  async #row(name: string): Promise<TmuxRow | undefined> {
    const { code, stdout } = await this.#run(name, [
      'list-panes',
      '-a',
      '-F',
      PANE_FIELDS.map(field => `#{${field}}`).join('|'),
    ])
    const row = code === 0 ? rowOf(stdout.toString().trim().split('|')) : undefined
    if (row?.closed) repeatChildSignal(row.server)
    return row
  }

  async #run(name: string, args: readonly string[], input?: string): Promise<RunResult> {
    const options = [...argsOf(name), ...(input === undefined ? ['-N'] : [])]
    return run(this.#options.program, [...options, ...args], {
      ...(await this.#place()),
      maxBytes: 8 * MOST_TEXT,
      timeoutMs: PATIENCE,
      ...(input !== undefined && { input }),
    })
  }

  /** Sockets are named relative to their folder, because the path of a socket must be short. */
  async #place(): Promise<{ cwd: string; env: Env }> {
    return { cwd: this.#options.folder, env: await ownEnv({ TERM: 'xterm-256color' }) }
  }

  #watch(): void {
    this.#watcher ??= watch(this.#options.folder, { persistent: false }, (_, file) => {
      if (file !== DIED) return
      this.#options.changed()
      // Work that began before the close may fail.
      void this.#endCaptures().catch(error => this.#closed || this.#options.uncaptured(error))
    }).on('error', ignored('the folder is gone, and its terminals with it'))
  }
}

/** A tmux server can miss the end of a program (see shell.ts); another SIGCHLD makes it look. */
const repeatChildSignal = (server: number): void => {
  try {
    process.kill(server, 'SIGCHLD')
  } catch {
    // The server has ended.
  }
}
