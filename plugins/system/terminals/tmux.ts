import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import { setTimeout as delay } from 'node:timers/promises'
import { killWalled, listEnv, run, type Env } from '../../../sdk/node/run.js'
import { MOST_TEXT, type Backend, type Feed, type History, type Listener, type Opening, type Session, type Size } from './backend.js'
import { ControlClient, quoted } from './control-client.js'
import { drawingOf, MODES, type Modes } from './drawing.js'
import { familyOf, foreground, insideWall } from './foreground.js'

/** What a terminal's shell is started as. */
export interface ShellCommand {
  readonly program: string
  readonly args: readonly string[]
  readonly env: Env
}

/** What tmux is run with. */
export interface TmuxOptions {
  /** The program's path. */
  readonly program: string
  /** A folder of this user alone, for the socket. */
  readonly folder: string
  readonly shell: (opening: Opening) => Promise<ShellCommand>
  /** Something about the sessions is another: a program has ended. */
  readonly changed: () => void
}

/** Relative, since a socket's whole path has to be short. */
const SOCKET = 'tmux'
/** The session that keeps the server up and that this daemon's own client is attached to. */
const KEEPER = 'keeper'
const NAME = /^(?:web|panel|agent|job|proc)-[A-Za-z0-9_-]+$/
const HISTORY = 100_000
const DRAWN = 20_000
const GRACE = 5_000
const LOOK = 50
/** Bytes of input that one command carries. */
const TYPED = 1_024

const SETTINGS = [
  'exit-empty off', '-g remain-on-exit on', '-g status off', '-g automatic-rename off', '-g allow-rename off', '-g update-environment ""',
  '-g default-terminal xterm-256color', `-g history-limit ${HISTORY}`, '-g set-titles off', '-g prefix None', '-g focus-events off',
].map(setting => `set-option ${setting}`)
/** A hook by itself tells no client; what it has run later does. */
const DIED = `set-hook -g pane-died ${quoted('run-shell -b -C "rename-window -t \'#{hook_pane}\' dead"')}`

const FIELDS = [
  'session_name', 'pane_dead', 'pane_dead_status', 'pane_dead_signal', 'pane_dead_time', 'pane_pid', 'window_activity', 'pane_width', 'pane_height', '@about',
] as const

/** What is remembered with a session. */
interface About {
  readonly label?: string
  readonly opened?: string
}

/** Terminals as sessions of a tmux server of the sandbox's own: they outlive the daemon. */
export class Tmux implements Backend {
  readonly #options: TmuxOptions
  #keeper: ControlClient | undefined
  #connecting: Promise<ControlClient | undefined> = Promise.resolve(undefined)

  constructor(options: TmuxOptions) {
    this.#options = options
  }

  async list(): Promise<Session[]> {
    return (await this.#rows()).map(({ pid, ...session }) => ({ ...session, ...(session.running && foreground(pid)) }))
  }

  async open(opening: Opening): Promise<void> {
    const { name, cols, rows, label, opened, typed } = opening
    const keeper = await this.#connected(true)
    const { program, args, env } = await this.#options.shell(opening)
    const about: About = { ...(label !== undefined && { label }), ...(opened !== undefined && { opened }) }
    const environment = Object.entries(env).flatMap(([key, value]) => ['-e', quoted(`${key}=${value}`)])
    const words = ['env', '-u', 'TMUX', '-u', 'TMUX_PANE', '-u', 'TERM_PROGRAM', '-u', 'TERM_PROGRAM_VERSION', program, ...args]
    await keeper!.ask(
      ['new-session -d -s', name, '-x', cols, '-y', rows, '-c /', ...environment, '--', ...words.map(quoted)].join(' '),
      `set-option -t ${target(name)} @about ${Buffer.from(JSON.stringify(about)).toString('base64url')}`,
      `resize-window -t ${target(name)} -x ${cols} -y ${rows}`,
    )
    if (typed !== undefined) await Promise.all(typing(name, `${typed}\r`).map(command => keeper!.ask(command)))
  }

  async follow(name: string, listener: Listener): Promise<Feed | undefined> {
    if (!(await this.#rows()).some(session => session.name === name)) return undefined
    return new TmuxFeed(name, listener, events => this.#client(['attach-session', '-t', `=${name}`], events))
  }

  async kill(name: string): Promise<void> {
    const found = (await this.#rows()).find(session => session.name === name)
    if (!found) return
    const { pid } = found
    if (found.running) {
      signalAll(familyOf(pid).filter(each => insideWall(each)), 'SIGHUP')
      for (let waited = 0; waited < GRACE && isThere(pid); waited += LOOK) await delay(LOOK)
      if (isThere(pid)) {
        killWalled(pid)
        signalAll(familyOf(pid), 'SIGKILL')
        for (let waited = 0; waited < GRACE && isThere(pid); waited += LOOK) await delay(LOOK)
      }
    }
    await (await this.#connected(false))?.ask(`kill-session -t =${name}`).catch(() => {})
  }

  async history(name: string, lines: number): Promise<History | undefined> {
    if (!existsSync(join(this.#options.folder, SOCKET))) return undefined
    // By a client of its own: what a program shows could look like the end of an answer.
    const args = ['capture-pane', '-p', '-J', '-S', `-${lines}`, '-t', target(name), ';', 'display-message', '-p', '-t', target(name), '#{history_size}']
    const { code, stdout } = await run(this.#options.program, [...this.#args(), '-N', ...args], { ...this.#place(), maxBytes: 8 * MOST_TEXT })
    if (code !== 0) return undefined
    const text = stdout.toString()
    const end = text.lastIndexOf('\n', text.length - 2)
    const kept = Number(text.slice(end + 1))
    return { lines: text.slice(0, Math.max(end, 0)).split('\n').map(line => line.trimEnd()), more: kept > lines || kept >= HISTORY }
  }

  close(): void {
    this.#keeper?.close()
  }

  async #rows(): Promise<(Session & { pid: number })[]> {
    const keeper = await this.#connected(false)
    const [lines = []] = (await keeper?.ask(`list-panes -a -F ${quoted(FIELDS.map(field => `#{${field}}`).join('|'))}`)) ?? []
    return lines.flatMap(line => sessionOf(line.split('|')))
  }

  /** The client that commands go through; where none is wanted and no server runs, there is none. */
  #connected(start: boolean): Promise<ControlClient | undefined> {
    this.#connecting = this.#connecting.catch(() => {}).then(async () => {
      if (this.#keeper?.over === false) return this.#keeper
      if (!start && !existsSync(join(this.#options.folder, SOCKET))) return undefined
      return (this.#keeper = await this.#connect(start))
    })
    return this.#connecting
  }

  async #connect(start: boolean): Promise<ControlClient | undefined> {
    await mkdir(this.#options.folder, { recursive: true, mode: 0o700 })
    const how = start ? ['new-session', '-A', '-s', KEEPER, '-x', '80', '-y', '24', 'exec cat'] : ['-N', 'attach-session', '-t', `=${KEEPER}`]
    let said = ''
    const client = this.#client(how, {
      told: line => line.endsWith(' dead') && this.#options.changed(),
      ended: () => this.#options.changed(),
      failed: text => (said += text),
    })
    try {
      await client.ask(...SETTINGS)
      await client.ask(DIED)
      // Where that is not known a line in the screen says that the program has ended.
      await client.ask('set-option -g remain-on-exit-format ""').catch(() => {})
      return client
    } catch (error) {
      client.close()
      if (!start) return undefined
      throw new Error(`tmux did not start: ${said.trim() || (error as Error).message}`)
    }
  }

  #client(args: readonly string[], events: ConstructorParameters<typeof ControlClient>[1]): ControlClient {
    const child = spawn(this.#options.program, [...this.#args(), '-C', ...args], { ...this.#place(), detached: true, stdio: 'pipe' })
    return new ControlClient(child, events)
  }

  #args(): string[] {
    return ['-u', '-S', SOCKET, '-f', '/dev/null']
  }

  #place(): { cwd: string; env: { [name: string]: string } } {
    return { cwd: this.#options.folder, env: { ...listEnv({ TERM: 'xterm-256color' }) } }
  }
}

/** One session as a control client attached to it hears it. */
class TmuxFeed implements Feed {
  readonly #name: string
  readonly #client: ControlClient
  readonly #listener: Listener
  readonly #decoder = new StringDecoder('utf8')
  #closed = false

  constructor(name: string, listener: Listener, attach: (events: ConstructorParameters<typeof ControlClient>[1]) => ControlClient) {
    this.#name = name
    this.#listener = listener
    this.#client = attach({
      output: bytes => {
        const text = this.#decoder.write(bytes)
        if (text) listener.data(text)
      },
      told: line => line.endsWith(' dead') && this.draw(() => {}),
      ended: () => this.#closed || listener.lost(),
    })
  }

  draw(drawn: (text: string) => void): void {
    const at = target(this.#name)
    const asked = ['history_size', 'pane_dead', 'pane_dead_status', 'pane_dead_signal', ...MODES]
    this.#client.run([
      `display-message -p -t ${at} ${quoted(asked.map(name => `#{${name}}`).join('|'))}`,
      `capture-pane -p -e -S -${DRAWN} -t ${at}`,
      `capture-pane -p -e -a -q -t ${at}`,
    ], blocks => {
      if (blocks instanceof Error) return
      const [[facts = ''] = [], lines = [], other = []] = blocks
      const values = facts.split('|')
      const modes: Modes = Object.fromEntries(asked.map((name, index) => [name, Number(values[index] || 0)]))
      const height = modes.pane_height ?? lines.length
      const [text, hidden] = [lines, other].map(each => each.map(utf8))
      drawn(drawingOf({ history: text!.slice(0, -height), screen: text!.slice(-height), other: hidden!, modes }))
      if (values[1] === '1') this.#listener.exit(exitOf(values[2], values[3]))
    })
  }

  write(text: string): void {
    for (const command of typing(this.#name, text)) this.#client.run([command], () => {})
  }

  resize({ cols, rows }: Size): void {
    this.#client.run([`resize-window -t ${target(this.#name)} -x ${cols} -y ${rows}`], () => {})
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

const target = (name: string): string => `=${name}:`

const utf8 = (line: string): string => Buffer.from(line, 'latin1').toString()

/** Keys as their bytes, so that none of them means anything to tmux. */
const typing = (name: string, text: string): string[] => {
  const bytes = Buffer.from(text)
  return Array.from({ length: Math.ceil(bytes.length / TYPED) }, (_, at) => {
    const keys = [...bytes.subarray(at * TYPED, (at + 1) * TYPED)].map(byte => byte.toString(16).padStart(2, '0'))
    return `send-keys -t ${target(name)} -H ${keys.join(' ')}`
  })
}

/** A program that was ended by a signal is told of as a shell does. */
const exitOf = (status = '', signal = ''): number => (status !== '' ? Number(status) : 128 + (Number(signal) || 9))

const sessionOf = (values: readonly string[]): (Session & { pid: number })[] => {
  const row = Object.fromEntries(FIELDS.map((field, at) => [field, values[at] ?? '']))
  const name = row.session_name!
  if (!NAME.test(name)) return []
  const running = row.pane_dead !== '1'
  const about = (row['@about'] ? JSON.parse(Buffer.from(row['@about'], 'base64url').toString()) : {}) as About
  return [{
    ...about, name, running, pid: Number(row.pane_pid), activityAt: Number(row.window_activity) * 1000, cols: Number(row.pane_width), rows: Number(row.pane_height),
    ...(!running && { exitCode: exitOf(row.pane_dead_status, row.pane_dead_signal), endedAt: Number(row.pane_dead_time || 0) * 1000 }),
  }]
}

const isThere = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const signalAll = (pids: readonly number[], signal: NodeJS.Signals): void => {
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch {
      // It ended by itself.
    }
  }
}
