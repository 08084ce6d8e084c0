import { createHash, randomBytes } from 'node:crypto'
import { refuse, type Host } from '../../../sdk/index.js'
import { lowerPriority } from '../../../sdk/node/programs/priority.js'
import type { ProcessCommand, SessionRun } from './supervised-process.js'

const MOST_NAME = 63
const PURPOSE = /^extension (?<id>\S+) (?<name>\S+) (?<revision>\S+) \S+$/

/** The name of the terminal session of a background program; a long one ends in a hash. */
export const processSessionOf = (id: string, name: string): string => {
  const whole = `proc-${id.replaceAll('.', '-')}-${name}`
  if (whole.length <= MOST_NAME) return whole
  const hash = createHash('sha256').update(`${id} ${name}`).digest('hex').slice(0, 12)
  return `${whole.slice(0, MOST_NAME - 1 - hash.length)}-${hash}`
}

/** A text for one run of a program, which names what runs. */
export const purposeOf = (id: string, name: string, revision: string): string =>
  `extension ${id} ${name} ${revision.slice(0, 40)} ${randomBytes(6).toString('hex')}`

/** A running session, with the program and the revision of the code that it was started from. */
export interface LeftSession extends SessionRun {
  readonly session: string
  readonly id: string
  readonly name: string
  readonly revision: string
}

/** Runs background programs in terminal sessions, which people attach to. */
export class ProcessSessions {
  readonly #host: Pick<Host, 'call' | 'serves'>

  constructor(host: Pick<Host, 'call' | 'serves'>) {
    this.#host = host
  }

  /** Runs a command, which is behind the wall already. */
  async run(session: string, label: string, purpose: string, command: ProcessCommand): Promise<SessionRun> {
    if (!(await this.#host.serves('terminals.run')))
      refuse('missing-program', 'this sandbox has no terminals, in which the programs of extensions run')
    const { program, args, env, port } = command
    const made = await this.#host.call('terminals.run', {
      name: session,
      label: label.slice(0, 80),
      purpose,
      command: [program, ...args],
      env: Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [{ name, value }])),
      ...(port !== undefined && { port }),
    })
    if (made.pid !== undefined) lowerPriority(made.pid)
    return made
  }

  async end(session: string): Promise<void> {
    if (await this.#host.serves('terminals.stop')) await this.#host.call('terminals.stop', { name: session })
  }

  /** The sessions of background programs that run, such as those of a daemon before this one. */
  async running(): Promise<LeftSession[]> {
    if (!(await this.#host.serves('terminals.running'))) return []
    const { sessions } = await this.#host.call('terminals.running')
    return sessions.flatMap(({ name: session, ...run }) => {
      const { id, name, revision } = PURPOSE.exec(run.purpose)?.groups ?? {}
      return run.running && id !== undefined && name !== undefined && revision !== undefined
        ? [{ ...run, session, id, name, revision }]
        : []
    })
  }
}
