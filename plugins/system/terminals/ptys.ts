import { StringDecoder } from 'node:string_decoder'
import type { SerializeAddon } from '@xterm/addon-serialize'
import type { Terminal } from '@xterm/headless'
import type { IPty } from '@lydell/node-pty'
import type { Backend, Feed, History, TerminalListener, Opening, Session, ShellCommand } from './backend.js'
import type { Capture, OpenCapture } from './capture.js'
import { endTerminal, foreground } from './processes.js'

const HISTORY = 20_000
const FULL = 1 << 20
const ROOM = 256 << 10

/** The libraries of terminals without tmux, loaded when the first is opened. */
interface PtysDeps {
  readonly spawn: typeof import('@lydell/node-pty').spawn
  readonly screen: (options: ConstructorParameters<typeof Terminal>[0]) => {
    terminal: Terminal
    picture: SerializeAddon
  }
}

const readParts = async (): Promise<PtysDeps> => {
  const [{ default: pty }, { default: headless }, { default: serialize }] = await Promise.all([
    import('@lydell/node-pty'),
    import('@xterm/headless'),
    import('@xterm/addon-serialize'),
  ])
  return {
    spawn: pty.spawn,
    screen: options => {
      const terminal = new headless.Terminal(options)
      const picture = new serialize.SerializeAddon()
      terminal.loadAddon(picture)
      return { terminal, picture }
    },
  }
}

/** Terminals in this process, for machines without tmux: they end with the daemon. */
export class Ptys implements Backend {
  readonly #deps: PtysDeps
  readonly #shell: (opening: Opening) => Promise<ShellCommand>
  readonly #changed: () => void
  readonly #capture: OpenCapture
  readonly #held = new Map<string, Held>()

  private constructor(
    deps: PtysDeps,
    shell: (opening: Opening) => Promise<ShellCommand>,
    changed: () => void,
    capture: OpenCapture,
  ) {
    this.#deps = deps
    this.#shell = shell
    this.#changed = changed
    this.#capture = capture
  }

  /** Fails where this machine has no terminals of that kind. */
  static async open(
    shell: (opening: Opening) => Promise<ShellCommand>,
    changed: () => void,
    capture: OpenCapture,
  ): Promise<Ptys> {
    return new Ptys(await readParts(), shell, changed, capture)
  }

  async list(): Promise<Session[]> {
    return [...this.#held.values()].map(held => held.session)
  }

  async open(opening: Opening): Promise<void> {
    const { program, args, env } = await this.#shell(opening)
    const { name, cols, rows, typed } = opening
    const { terminal, picture } = this.#deps.screen({
      cols,
      rows,
      scrollback: HISTORY,
      allowProposedApi: true,
      logLevel: 'off',
    })
    const capture = await this.#capture(name, opening)
    capture.note('the terminal begins')
    const pty = this.#deps.spawn(program, [...args], {
      name: 'xterm-256color',
      cols,
      rows,
      cwd: '/',
      env: { ...env },
      encoding: null,
    })
    this.#held.set(name, new Held(opening, pty, { terminal, picture, capture }, this.#changed))
    if (typed !== undefined) pty.write(`${typed}\r`)
  }

  async follow(name: string, listener: TerminalListener): Promise<Feed | undefined> {
    return this.#held.get(name)?.follow(listener)
  }

  async kill(name: string, signal?: 'SIGHUP' | 'SIGTERM'): Promise<void> {
    await this.#held.get(name)?.end(signal)
    this.#held.delete(name)
  }

  async history(name: string): Promise<History | undefined> {
    return this.#held.get(name)?.history()
  }

  /** These sessions never outlive the daemon. */
  async resume(): Promise<void> {}

  async close(): Promise<void> {
    await Promise.all([...this.#held.values()].map(held => held.hangUp()))
  }
}

/** Terminal output is drawn on a screen and logged. */
interface Shows {
  readonly terminal: Terminal
  readonly picture: SerializeAddon
  readonly capture: Capture
}

/** One terminal, with the screen its output is drawn on. */
class Held {
  readonly #opening: Opening
  readonly #pty: IPty
  readonly #terminal: Terminal
  readonly #picture: SerializeAddon
  readonly #capture: Capture
  readonly #listeners = new Set<TerminalListener>()
  readonly #decoder = new StringDecoder('utf8')
  readonly #over = Promise.withResolvers<void>()
  #activityAt = Date.now()
  #ended: { readonly exitCode: number; readonly endedAt: number } | undefined
  /** Bytes of output that are not drawn yet. */
  #undrawn = 0
  /** Who paused the program: viewers, and the screen. */
  readonly #holds = new Set<'listener' | 'screen'>()

  constructor(opening: Opening, pty: IPty, { terminal, picture, capture }: Shows, changed: () => void) {
    this.#opening = opening
    this.#pty = pty
    this.#terminal = terminal
    this.#picture = picture
    this.#capture = capture
    // Without an encoding, output comes as bytes.
    pty.onData(bytes => this.#received(bytes as unknown as Buffer))
    terminal.onData(answer => this.#ended ?? pty.write(answer))
    pty.onExit(({ exitCode, signal }) => {
      this.#ended = { exitCode: signal ? 128 + signal : exitCode, endedAt: Date.now() }
      this.#over.resolve()
      void capture.end('the terminal has ended')
      changed()
      terminal.write('', () => this.#listeners.forEach(listener => listener.exit(this.#ended!.exitCode)))
    })
  }

  get session(): Session {
    const { name, label, opened, work } = this.#opening
    return {
      name,
      running: !this.#ended,
      activityAt: this.#activityAt,
      cols: this.#terminal.cols,
      rows: this.#terminal.rows,
      ...(label !== undefined && { label }),
      ...(opened !== undefined && { opened }),
      ...(work && { work }),
      ...(this.#ended ?? { pid: this.#pty.pid, ...foreground(this.#pty.pid) }),
    }
  }

  /** Output is sent when it is drawn, so that a drawn screen holds exactly the output sent before it. */
  #received(bytes: Buffer): void {
    this.#activityAt = Date.now()
    this.#capture.write(bytes)
    const text = this.#decoder.write(bytes)
    this.#undrawn += bytes.length
    if (this.#undrawn > FULL) this.#hold('screen')
    this.#terminal.write(text, () => {
      this.#undrawn -= bytes.length
      if (this.#undrawn < ROOM) this.#release('screen')
      for (const listener of this.#listeners) listener.data(text)
    })
  }

  follow(listener: TerminalListener): Feed {
    this.#listeners.add(listener)
    return {
      draw: drawn =>
        this.#terminal.write('', () => {
          drawn(this.#picture.serialize())
          if (this.#ended) listener.exit(this.#ended.exitCode)
        }),
      write: text => this.#ended ?? this.#pty.write(text),
      resize: ({ cols, rows }) => {
        if (this.#ended) return
        this.#pty.resize(cols, rows)
        this.#terminal.resize(cols, rows)
        this.#capture.resize({ cols, rows })
      },
      pause: () => this.#hold('listener'),
      resume: () => this.#release('listener'),
      close: () => {
        this.#listeners.delete(listener)
        this.#release('listener')
      },
    }
  }

  async history(): Promise<History> {
    await new Promise<void>(resolve => this.#terminal.write('', resolve))
    const { normal } = this.#terminal.buffer
    const whole: string[] = []
    for (let at = 0; at < normal.length; at++) {
      const line = normal.getLine(at)
      const text = line?.translateToString(true) ?? ''
      if (line?.isWrapped && whole.length) whole.push(whole.pop() + text)
      else whole.push(text)
    }
    return { lines: whole, more: normal.length >= HISTORY + this.#terminal.rows }
  }

  async end(signal?: 'SIGHUP' | 'SIGTERM'): Promise<void> {
    if (this.#ended) return
    this.#holds.clear()
    this.#pty.resume()
    await endTerminal(this.#pty.pid, signal)
    await this.#over.promise
  }

  /** Ends with the daemon, once the output is logged. */
  async hangUp(): Promise<void> {
    if (!this.#ended) this.#pty.kill('SIGHUP')
    await this.#capture.end('the daemon has ended, and the terminal with it')
  }

  #hold(who: 'listener' | 'screen'): void {
    if (!this.#holds.size) this.#pty.pause()
    this.#holds.add(who)
  }

  #release(who: 'listener' | 'screen'): void {
    if (this.#holds.delete(who) && !this.#holds.size) this.#pty.resume()
  }
}
