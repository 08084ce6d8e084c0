import { realpath } from 'node:fs/promises'
import { relative } from 'node:path'
import { Refusal, refuse, type Handlers, type Input, type Reply } from '../../../sdk/index.js'
import { redacted } from '../../../sdk/node/access/redact.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { inside } from '../../../sdk/node/files/paths.js'
import type { Env } from '../../../sdk/node/programs/run.js'
import type { System, TerminalVariable, TerminalWorkCalls, TerminalWorkRow } from '../contract.js'
import type { Backend, Opening, Session } from './backend.js'
import { trimmed } from './drawing.js'
import { scriptOf } from './script.js'

const SESSIONS = 64
const SIZE = { cols: 120, rows: 30 }

type Started = Input<System, 'terminals.start'>
type Works = Session & Required<Pick<Session, 'work'>>

/** Dependencies of the sessions that groups start. */
export interface TerminalWorkDeps {
  readonly workspace: string
  readonly backend: () => Promise<Backend>
  readonly changed: (name: string) => void
  readonly ended: (name: string, purpose: string, exitCode: number | undefined) => void
}

/** Runs programs for other groups in sessions, and reports their ends. */
export class WorkTerminals {
  readonly #deps: TerminalWorkDeps
  readonly #locks = new KeyedMutex()
  /** The purposes of sessions whose end was not reported yet, by name. */
  readonly #running = new Map<string, string>()

  constructor(deps: TerminalWorkDeps) {
    this.#deps = deps
  }

  handlers(): Pick<Handlers<System>, keyof TerminalWorkCalls> {
    return {
      'terminals.start': input => this.#locks.with(input.name, () => this.#start(input)),
      'terminals.run': input => this.#locks.with(input.name, () => this.#run(input)),
      'terminals.running': async () => ({ sessions: (await this.#sessions().catch(noneWhereMissing)).map(rowOf) }),
      'terminals.stop': async ({ name }) => {
        await this.#locks.with(name, () => this.#stop(name))
        return { ok: true }
      },
      'terminals.tail': input => this.#tail(input),
    }
  }

  /** Reports what ended since the last time. */
  async check(): Promise<void> {
    if (this.#running.size === 0) return
    const sessions = new Map((await this.#sessions()).map(session => [session.name, session]))
    for (const [name, purpose] of [...this.#running]) {
      const session = sessions.get(name)
      if (session?.running || !this.#running.delete(name)) continue
      this.#deps.ended(name, purpose, session?.exitCode)
    }
  }

  /** Reports the ends of sessions that are older than this daemon too. */
  async resume(): Promise<void> {
    for (const { name, running, work } of await this.#sessions()) if (running) this.#running.set(name, work.purpose)
  }

  async #start({ name, label, purpose, steps, goOn = false, env = [], port, only }: Started): Promise<TerminalWorkRow> {
    const known = await this.#known(name)
    if (known?.running) {
      if (known.work.purpose === purpose) return rowOf(known)
      runsAnother(known)
    }
    const root = await realpath(this.#deps.workspace)
    const placed = await Promise.all(
      steps.map(async ({ cwd, program }) => ({ program, folder: cwd === '.' ? root : await inside(root, cwd) })),
    )
    const folder = placed[0]!.folder
    const opened = relative(root, folder)
    return this.#open({
      ...SIZE,
      name,
      folder,
      work: { purpose, ...(port !== undefined && { port }) },
      program: { script: scriptOf(placed, goOn), env: variables(env), ...(only && { only }) },
      ...(label !== undefined && { label }),
      ...(opened && { opened }),
    })
  }

  async #run({ name, label, purpose, command, env, port }: Input<System, 'terminals.run'>): Promise<TerminalWorkRow> {
    const known = await this.#known(name)
    if (known?.running) runsAnother(known)
    const [program = '', ...args] = command
    return this.#open({
      ...SIZE,
      name,
      folder: '/',
      work: { purpose, ...(port !== undefined && { port }) },
      command: { program, args, env: variables(env) },
      ...(label !== undefined && { label }),
    })
  }

  async #known(name: string): Promise<Works | undefined> {
    return (await this.#sessions()).find(session => session.name === name)
  }

  /** Opens a session in place of one that ended. */
  async #open(opening: Opening & Required<Pick<Opening, 'work'>>): Promise<TerminalWorkRow> {
    const { name, work } = opening
    const backend = await this.#deps.backend()
    const sessions = await this.#sessions()
    if (sessions.filter(({ running }) => running).length >= SESSIONS)
      refuse('too-many', `expected at most ${SESSIONS} running sessions of programs, found ${SESSIONS}: end one first`)
    if (sessions.some(session => session.name === name)) await backend.kill(name)
    await backend.open(opening)
    this.#running.set(name, work.purpose)
    this.#deps.changed(name)
    // It may have ended before it was added.
    await this.check()
    const made = await this.#known(name)
    return made ? rowOf(made) : refuse('failed', `the terminal ${name} was removed as soon as it was opened`)
  }

  async #stop(name: string): Promise<void> {
    if (!(await this.#sessions()).some(session => session.name === name)) return
    await (await this.#deps.backend()).kill(name, 'SIGTERM')
    this.#deps.changed(name)
    await this.check()
  }

  async #tail({ name, lines }: Input<System, 'terminals.tail'>): Promise<Reply<System, 'terminals.tail'>> {
    const found = await (await this.#deps.backend()).history(name, lines)
    return { text: found ? redacted(trimmed(found.lines).slice(-lines).join('\n')) : '' }
  }

  async #sessions(): Promise<Works[]> {
    return (await (await this.#deps.backend()).list()).filter((session): session is Works => session.work !== undefined)
  }
}

const runsAnother = ({ name, work }: Works): never =>
  refuse('conflict', `the terminal ${name} runs something else (${work.purpose}): end it first`)

const variables = (env: readonly TerminalVariable[]): Env =>
  Object.fromEntries(env.map(({ name, value }) => [name, value]))

/** A machine that cannot run sessions has none. */
const noneWhereMissing = (error: unknown): [] => {
  if (error instanceof Refusal && error.reason === 'missing-program') return []
  throw error
}

const rowOf = ({ name, work, running, exitCode, endedAt, pid }: Works): TerminalWorkRow => ({
  name,
  running,
  ...work,
  ...(exitCode !== undefined && { exitCode }),
  ...(endedAt !== undefined && { endedAt }),
  ...(pid !== undefined && { pid }),
})
