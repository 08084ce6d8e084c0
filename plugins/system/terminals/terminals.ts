import { randomBytes } from 'node:crypto'
import { realpath, stat } from 'node:fs/promises'
import { relative } from 'node:path'
import { type Caller, type Context, type Input, refuse, type SocketContext } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { contains, inside } from '../../../sdk/node/files/paths.js'
import type { System, TerminalClientFrame, TerminalServerFrame, TerminalSession } from '../contract.js'
import { MOST_TEXT, type Backend, type Session, type TerminalSize } from './backend.js'
import { trimmed } from './drawing.js'
import { TerminalFanout, type Viewer } from './fanout.js'

const SHELLS = 32
const SOCKETS = 32
const KEPT = 24 * 60 * 60_000
const LINES = 20_000
const USUAL: TerminalSize = { cols: 80, rows: 24 }

const KINDS: { readonly [prefix: string]: TerminalSession['kind'] } = {
  web: 'shell',
  panel: 'panel',
  agent: 'agent',
  job: 'job',
  proc: 'process',
}
/** Kinds whose text only maintainers may read. */
const CLOSED = new Set(['shell', 'process'])

type Asked = Omit<Input<System, 'POST /system/terminals'>, 'name'> & { name?: string }
type Attached = Input<System, 'GET /system/terminal'>

/** Dependencies of the terminals. */
export interface TerminalsDeps {
  readonly workspace: string
  readonly backend: () => Promise<Backend>
  /** Whether a caller may see a folder, named by its workspace path; absent: the root. */
  readonly sees: (caller: Caller, folder: string | undefined) => Promise<boolean>
  readonly changed: (name?: string) => void
  readonly recorded: (what: 'opened' | 'killed' | 'attached', name: string, context: Context) => Promise<void>
  readonly now?: () => number
}

/** The terminals of the sandbox: lists, opens and closes them, and connects their viewers. */
export class Terminals {
  readonly #deps: TerminalsDeps
  readonly #rooms = new Map<string, TerminalFanout>()
  readonly #locks = new KeyedMutex()
  #sockets = 0

  constructor(deps: TerminalsDeps) {
    this.#deps = deps
  }

  async list(caller: Caller): Promise<TerminalSession[]> {
    const sessions = await this.#sessions()
    const seen = await Promise.all(sessions.map(({ opened }) => this.#deps.sees(caller, opened)))
    return Promise.all(sessions.filter((_, at) => seen[at]).map(session => this.#row(session)))
  }

  async open(asked: Asked, context: Context): Promise<TerminalSession> {
    const {
      name = `web-${randomBytes(5).toString('hex')}`,
      cwd,
      label,
      command,
      cols = USUAL.cols,
      rows = USUAL.rows,
    } = asked
    const backend = await this.#deps.backend()
    return this.#locks.with('open', async () => {
      const sessions = await this.#sessions()
      const known = sessions.find(session => session.name === name)
      if (known) return this.#row(known)
      const folder = await this.#folder(cwd)
      if (sessions.filter(session => session.running && kindOf(session) === 'shell').length >= SHELLS) {
        refuse('too-many', `expected at most ${SHELLS} shells, found ${SHELLS}: close one first`)
      }
      const opened = relative(await realpath(this.#deps.workspace), folder)
      await backend.open({
        name,
        cols,
        rows,
        folder,
        ...(label !== undefined && { label }),
        ...(opened && { opened }),
        ...(command !== undefined && { typed: command }),
      })
      const made =
        (await backend.list()).find(session => session.name === name)
        ?? refuse('failed', `the terminal ${name} ended as soon as it was opened`)
      await this.#deps.recorded('opened', name, context)
      this.#deps.changed(name)
      return this.#row(made)
    })
  }

  async kill(name: string, context: Context): Promise<void> {
    const backend = await this.#deps.backend()
    await this.#locks.with(`kill ${name}`, async () => {
      if (!(await this.#sessions()).some(session => session.name === name)) return
      await backend.kill(name)
      await this.#deps.recorded('killed', name, context)
      this.#deps.changed(name)
    })
  }

  async scrollback(
    name: string,
    lines = LINES,
    caller: Caller,
  ): Promise<{ name: string; text: string; lines: number; truncated: boolean }> {
    const backend = await this.#deps.backend()
    const session = (await this.#sessions()).find(one => one.name === name)
    if (!session || !(await this.#deps.sees(caller, session.opened))) return absent(name)
    if (CLOSED.has(kindOf(session)) && (caller.role === 'viewer' || caller.role === 'collaborator')) {
      refuse(
        'forbidden',
        `the text of a terminal of kind ${kindOf(session)} needs role maintainer, found role ${caller.role}`,
      )
    }
    const { lines: found, more } = (await backend.history(name, lines)) ?? absent(name)
    const whole = trimmed(found)
    const last = whole.slice(-lines)
    let text = last.join('\n')
    const cut = Buffer.byteLength(text) > MOST_TEXT
    if (cut) {
      text = Buffer.from(text).subarray(-MOST_TEXT).toString()
      text = text.slice(text.indexOf('\n') + 1)
    }
    return {
      name,
      text,
      lines: text === '' ? 0 : text.split('\n').length,
      truncated: more || cut || last.length < whole.length,
    }
  }

  /** Adds a viewer to a terminal and returns what it shows from then on. */
  async attach(
    { session: name, cols = USUAL.cols, rows = USUAL.rows, cwd }: Attached,
    context: SocketContext<TerminalClientFrame>,
  ): Promise<AsyncIterable<TerminalServerFrame>> {
    if (this.#sockets >= SOCKETS)
      refuse('too-many', `expected at most ${SOCKETS} sockets on terminals, found ${SOCKETS}: close one first`)
    this.#sockets += 1
    let viewer: Viewer | undefined
    let here = true
    const leave = () => {
      if (!here) return
      here = false
      this.#sockets -= 1
      viewer?.leave()
      this.#deps.changed(name)
    }
    context.signal.addEventListener('abort', leave, { once: true })
    try {
      const size = { cols, rows }
      if (!(await this.#sessions()).some(session => session.name === name)) {
        if (!/^web-[A-Za-z0-9_-]{1,40}$/.test(name)) absent(name)
        await this.open({ name, ...size, ...(cwd !== undefined && { cwd }) }, context)
      }
      viewer = (await this.#fanout(name).enter(size)) ?? absent(name)
      if (context.signal.aborted) viewer.leave()
      else await this.#deps.recorded('attached', name, context)
    } catch (error) {
      leave()
      throw error
    }
    this.#deps.changed(name)
    void handleFrames(viewer, context.frames)
    return seated(viewer, leave)
  }

  #fanout(name: string): TerminalFanout {
    const known = this.#rooms.get(name)
    if (known) return known
    const follow = async (listener: TerminalFanout) => (await this.#deps.backend()).follow(name, listener)
    const made: TerminalFanout = new TerminalFanout(
      listener => follow(listener as TerminalFanout),
      () => {
        if (this.#rooms.get(name) === made) this.#rooms.delete(name)
      },
    )
    this.#rooms.set(name, made)
    return made
  }

  /** Every session; removes those that ended long ago. */
  async #sessions(): Promise<Session[]> {
    const backend = await this.#deps.backend()
    const now = (this.#deps.now ?? Date.now)()
    const all = await backend.list()
    const old = all.filter(({ endedAt }) => endedAt !== undefined && now - endedAt >= KEPT)
    await Promise.all(old.map(({ name }) => backend.kill(name)))
    return all.filter(session => !old.includes(session)).sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  async #folder(cwd: string | undefined): Promise<string> {
    const { workspace } = this.#deps
    const path =
      cwd === undefined || cwd === '' || cwd === '.' ? await realpath(workspace) : await inside(workspace, cwd)
    if (!(await stat(path)).isDirectory())
      refuse('not-found', `cwd: expected a folder of the workspace, found a file at ${cwd}`)
    return path
  }

  async #row(session: Session): Promise<TerminalSession> {
    const { name, label, running, activityAt, exitCode, command, folder, cols, rows } = session
    const root = await realpath(this.#deps.workspace)
    const cwd = folder !== undefined && contains(root, folder) ? relative(root, folder) : ''
    return {
      name,
      kind: kindOf(session),
      running,
      activityAt,
      cols,
      rows,
      attached: this.#rooms.get(name)?.viewers ?? 0,
      ...(label !== undefined && { label }),
      ...(exitCode !== undefined && { exitCode }),
      ...(command !== undefined && { command }),
      ...(cwd && { cwd }),
    }
  }
}

const kindOf = ({ name }: Pick<Session, 'name'>): TerminalSession['kind'] => KINDS[name.split('-', 1)[0]!] ?? 'process'

const absent = (name: string): never => refuse('not-found', `no terminal is named ${name}`)

async function* seated(viewer: Viewer, leave: () => void): AsyncGenerator<TerminalServerFrame> {
  try {
    yield* viewer
  } finally {
    leave()
  }
}

/** Handles what a client sends, until it disconnects. */
const handleFrames = async (viewer: Viewer, frames: AsyncIterable<TerminalClientFrame>): Promise<void> => {
  for await (const frame of frames) {
    if (frame.type === 'input') viewer.write(frame.data)
    else if (frame.type === 'resize') viewer.resize(frame)
    else viewer.pong()
  }
}
