import { spawn } from 'node:child_process'
import { watch, type FSWatcher } from 'node:fs'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
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
  type TerminalSize,
} from './backend.js'
import type { OpenCapture } from './capture.js'
import { ControlClient, quotedForTmux } from './control-client.js'
import { drawingOf, MODES, type Modes } from './drawing.js'
import { inShell } from './pipe.js'
import { bytesReadBy, endTerminal, foreground } from './processes.js'
import { TmuxCaptures } from './tmux-captures.js'

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

const NAME = /^(?:web|panel|agent|job|proc)-[A-Za-z0-9_-]+$/
/** Rewritten whenever a program has ended. */
const DIED = 'died'
const HISTORY = 100_000
const DRAWN = 20_000
/** Bytes of input that one command carries. */
const TYPED = 1_024
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

const FIELDS = [
  'session_name',
  'pane_dead',
  'pane_dead_status',
  'pane_dead_signal',
  'pane_dead_time',
  'pane_pid',
  'window_activity',
  'pane_width',
  'pane_height',
  'pid',
  '@about',
] as const

/** A session, with its first process and that of its server. */
interface Row extends Session {
  readonly leader: number
  readonly server: number
  /** Its terminal is closed, but tmux does not report the end of its program yet. */
  readonly closed: boolean
}

/** What is stored with a session. */
interface About extends Pick<Session, 'label' | 'opened' | 'work'> {}

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
    const about: About = {
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
    const names = (await readdir(this.#options.folder).catch(() => [] as string[])).filter(name => NAME.test(name))
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

  async #row(name: string): Promise<Row | undefined> {
    const { code, stdout } = await this.#run(name, [
      'list-panes',
      '-a',
      '-F',
      FIELDS.map(field => `#{${field}}`).join('|'),
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
    }).on('error', () => {})
  }
}

/** One session, followed by a control client attached to it. */
class TmuxFeed implements Feed {
  readonly #name: string
  readonly #client: ControlClient
  readonly #listener: TerminalListener
  readonly #resized: (size: TerminalSize) => void
  readonly #decoder = new StringDecoder('utf8')
  #closed = false

  constructor(
    name: string,
    listener: TerminalListener,
    resized: (size: TerminalSize) => void,
    attach: (events: ConstructorParameters<typeof ControlClient>[1]) => ControlClient,
  ) {
    this.#name = name
    this.#listener = listener
    this.#resized = resized
    this.#client = attach({
      output: bytes => {
        const text = this.#decoder.write(bytes)
        if (text) listener.data(text)
      },
      notified: line => line.endsWith(' dead') && this.draw(() => {}),
      ended: () => this.#closed || listener.lost(),
    })
  }

  draw(drawn: (text: string) => void): void {
    const at = target(this.#name)
    const asked = ['history_size', 'pane_dead', 'pane_dead_status', 'pane_dead_signal', ...MODES]
    this.#client.run(
      [
        `display-message -p -t ${at} ${quotedForTmux(asked.map(name => `#{${name}}`).join('|'))}`,
        `capture-pane -p -e -S -${DRAWN} -t ${at}`,
        `capture-pane -p -e -a -q -t ${at}`,
      ],
      blocks => {
        if (blocks instanceof Error) return
        const [[facts = ''] = [], lines = [], other = []] = blocks
        const values = facts.split('|')
        const modes: Modes = Object.fromEntries(asked.map((name, index) => [name, Number(values[index] || 0)]))
        const height = modes.pane_height ?? lines.length
        const [text, hidden] = [lines, other].map(each => each.map(utf8))
        drawn(drawingOf({ history: text!.slice(0, -height), screen: text!.slice(-height), other: hidden!, modes }))
        if (hasEnded(values[1], values[2], values[3])) this.#listener.exit(exitOf(values[2], values[3]))
      },
    )
  }

  write(text: string): void {
    for (const command of typing(this.#name, text)) this.#client.run([command], () => {})
  }

  resize({ cols, rows }: TerminalSize): void {
    this.#client.run([`resize-window -t ${target(this.#name)} -x ${cols} -y ${rows}`], () =>
      this.#resized({ cols, rows }),
    )
  }

  pause(): void {
    this.#client.pause()
  }

  resume(): void {
    this.#client.resume()
  }

  close(): void {
    this.#closed = true
    this.#client.close()
  }
}

const argsOf = (name: string): string[] => ['-u', '-S', name, '-f', '/dev/null']

const target = (name: string): string => `=${name}:`

/** The commands that pipe output to a shell command; tmux expands its own formats and those of strftime(3) in it. */
const piping = (name: string, command: string): string[] => [
  '-O',
  '-t',
  target(name),
  command.replaceAll('#', '##').replaceAll('%', '%%'),
]

const utf8 = (line: string): string => Buffer.from(line, 'latin1').toString()

/** The commands that send keys, as bytes, so that tmux interprets none of them. */
const typing = (name: string, text: string): string[] => {
  const bytes = Buffer.from(text)
  return Array.from({ length: Math.ceil(bytes.length / TYPED) }, (_, at) => {
    const keys = [...bytes.subarray(at * TYPED, (at + 1) * TYPED)].map(byte => byte.toString(16).padStart(2, '0'))
    return `send-keys -t ${target(name)} -H ${keys.join(' ')}`
  })
}

/** Reports a program that was ended by a signal as a shell does: 128 plus its number. */
const exitOf = (status: string | undefined, signal: string | undefined): number =>
  status ? Number(status) : 128 + Number(signal)

/** A pane is dead as soon as its terminal is closed; how its program ended is known a moment later. */
const hasEnded = (dead: string | undefined, status: string | undefined, signal: string | undefined): boolean =>
  dead === '1' && Boolean(status || signal)

/** A tmux server can miss the end of a program (see shell.ts); another SIGCHLD makes it look. */
const repeatChildSignal = (server: number): void => {
  try {
    process.kill(server, 'SIGCHLD')
  } catch {
    // The server has ended.
  }
}

const rowOf = (values: readonly string[]): Row | undefined => {
  const row = Object.fromEntries(FIELDS.map((field, at) => [field, values[at] ?? '']))
  const name = row.session_name!
  if (!NAME.test(name)) return undefined
  const running = !hasEnded(row.pane_dead, row.pane_dead_status, row.pane_dead_signal)
  const about = (row['@about'] ? JSON.parse(Buffer.from(row['@about'], 'base64url').toString()) : {}) as About
  return {
    ...about,
    name,
    running,
    leader: Number(row.pane_pid),
    server: Number(row.pid),
    closed: running && row.pane_dead === '1',
    activityAt: Number(row.window_activity) * 1000,
    cols: Number(row.pane_width),
    rows: Number(row.pane_height),
    ...(!running && {
      exitCode: exitOf(row.pane_dead_status, row.pane_dead_signal),
      endedAt: Number(row.pane_dead_time || 0) * 1000,
    }),
  }
}
