import { refuse, type Log, type Store } from '../../../sdk/index.js'
import type { Masker } from '../../../sdk/node/access/masker.js'
import { pace } from '../../../sdk/node/concurrency/pace.js'
import type { Trust } from '../../../sdk/node/wall/spec.js'
import type { Walled } from '../../../sdk/node/wall/wall.js'
import { shortText } from '../outputs/head-and-tail.js'
import { BackgroundProcess, type ProcessFacts } from './background-process.js'
import type { BackgroundCount } from './contract.js'

const KEY = 'processes/'
const MOST_RUNNING = 16
const MOST_RUNNING_IN_ALL = 128
const MOST_ENDED = 8
/** So many outputs of ended commands are kept, of all conversations together. */
const MOST_OUTPUTS = 64
/** All commands together: a flood must not keep the daemon from everything else. */
const MOST_A_SECOND = 8 * 1024 * 1024
const MOST_COMMAND = 2_000

/** What a turn may reach: it uses only commands of turns that might reach the same. */
export interface ProcessAccess {
  readonly trust: Trust
  /** The persona and the folders, as text. */
  readonly reach: string
}

/** How a command begins in the background. */
export interface ProcessStart {
  readonly walled: Walled
  /** The command as people and models see it. */
  readonly shown: string
  readonly timeoutMs?: number | undefined
  readonly access: ProcessAccess
  /** The turn that starts it. */
  readonly run: string
}

/** A command that began in the background of a conversation. */
export interface KnownProcess extends ProcessFacts {
  /** Left out: it ended with an earlier daemon. */
  readonly process?: BackgroundProcess
  readonly access: ProcessAccess
  readonly run: string | undefined
  /** Its end is known to the model. */
  told: boolean
}

interface Held {
  next: number
  readonly known: KnownProcess[]
}

interface Stored {
  readonly next: number
  readonly running: readonly (ProcessFacts & { readonly access: ProcessAccess })[]
}

/** Why a command of an earlier daemon does not run. */
export const WITH_SANDBOX = 'ended when the sandbox restarted'

const isRunning = ({ process }: KnownProcess): boolean => process !== undefined && process.ended === undefined

/** The dependencies of commands in the background. */
export interface KeptProgramDeps {
  readonly store: Pick<Store, 'all' | 'set' | 'delete'>
  readonly log: Pick<Log, 'warn'>
  readonly masker: () => Masker
  /** Called when a command of a conversation began or ended. */
  readonly changed: (conversationId: string) => void
}

/** The commands that run in the background of conversations: they outlive turns, and end with their conversation. */
export class ConversationProcesses {
  readonly #deps: KeptProgramDeps
  readonly #held = new Map<string, Held>()
  /** Those that ended last. */
  readonly #ended: BackgroundProcess[] = []
  readonly #paced = pace(MOST_A_SECOND)
  #closing = false

  constructor(deps: KeptProgramDeps) {
    this.#deps = deps
  }

  /** Reads which commands ran when the last daemon ended, and with it they. */
  async load(): Promise<void> {
    for (const [key, { next, running }] of await this.#deps.store.all<Stored>(KEY)) {
      const known = running.map(facts => ({ ...facts, run: undefined, told: false }))
      this.#held.set(key.slice(KEY.length), { next, known })
    }
  }

  /** The commands of a conversation that run, and the last ones that ended. */
  all(conversationId: string): readonly KnownProcess[] {
    return this.#held.get(conversationId)?.known ?? []
  }

  /** The conversations that have or had commands in the background. */
  get conversations(): readonly string[] {
    return [...this.#held.keys()]
  }

  /** The ids of the commands of a conversation that run. */
  running(conversationId: string): readonly string[] {
    return this.all(conversationId)
      .filter(isRunning)
      .map(({ id }) => id)
  }

  /** How many commands of a conversation are known and run; undefined: none. */
  count(conversationId: string): BackgroundCount | undefined {
    const known = this.all(conversationId)
    return known.length === 0 ? undefined : { running: known.filter(isRunning).length, total: known.length }
  }

  /** Refuses one more where too many run. */
  assertRoom(conversationId: string): void {
    const running = (known: readonly KnownProcess[]) => known.filter(isRunning).length
    const here = running(this.all(conversationId))
    if (here >= MOST_RUNNING)
      refuse('too-many', `expected at most ${MOST_RUNNING} commands in the background, found ${here}: end one first`)
    const all = [...this.#held.values()].reduce((sum, { known }) => sum + running(known), 0)
    if (all >= MOST_RUNNING_IN_ALL)
      refuse('too-many', `expected at most ${MOST_RUNNING_IN_ALL} commands in the background of all conversations`)
  }

  /** Starts a command. */
  start(conversationId: string, { walled, shown, timeoutMs, access, run }: ProcessStart): BackgroundProcess {
    if (this.#closing) refuse('unavailable', 'the sandbox is shutting down')
    this.assertRoom(conversationId)
    const held = this.#held.get(conversationId) ?? { next: 1, known: [] }
    this.#held.set(conversationId, held)
    const { masker } = this.#deps
    const command = shortText(masker().mask(shown), MOST_COMMAND)
    const facts = { id: `sh-${held.next++}`, command, startedAt: Date.now() }
    const process = new BackgroundProcess(facts, walled, { masker, paced: this.#paced }, timeoutMs)
    held.known.push({ ...facts, process, access, run, told: false })
    this.#keep(conversationId, held)
    this.#deps.changed(conversationId)
    void process.over.then(() => {
      this.#ended.push(process)
      if (this.#ended.length > MOST_OUTPUTS) this.#ended.shift()?.drop()
      const ended = held.known.filter(one => !one.process || one.process.ended)
      for (const one of ended.slice(0, -MOST_ENDED)) held.known.splice(held.known.indexOf(one), 1)
      if (this.#closing || this.#held.get(conversationId) !== held) return
      this.#keep(conversationId, held)
      this.#deps.changed(conversationId)
    })
    return process
  }

  /** Ends the commands of a conversation that `picks` says; `why` completes "was ended". */
  async end(conversationId: string, why: string, picks: (one: KnownProcess) => boolean = () => true): Promise<void> {
    const ending = this.all(conversationId).filter(one => isRunning(one) && picks(one))
    await Promise.all(ending.map(({ process }) => process?.end(why)))
  }

  /** Marks the ends as told that a model was told; what an earlier daemon ran is left out then. */
  told(conversationId: string): void {
    const held = this.#held.get(conversationId)
    if (!held) return
    for (const one of held.known) if (!one.process || one.process.ended) one.told = true
    this.#keep(conversationId, held)
  }

  /** Ends and forgets those of a conversation that is deleted. */
  async forget(conversationId: string): Promise<void> {
    await this.end(conversationId, 'with its conversation')
    if (this.#held.delete(conversationId)) await this.#deps.store.delete(KEY + conversationId)
  }

  /** Ends all when the daemon stops; the next one says so. */
  async close(): Promise<void> {
    this.#closing = true
    await Promise.all([...this.#held.keys()].map(id => this.end(id, 'with the sandbox')))
  }

  #keep(conversationId: string, { next, known }: Held): void {
    const running = known
      .filter(({ process, told }) => (process ? !process.ended : !told))
      .map(({ id, command, startedAt, access }) => ({ id, command, startedAt, access }))
    const stored: Stored = { next, running }
    this.#deps.store.set(KEY + conversationId, stored).catch(error =>
      this.#deps.log.warn('storing which commands run failed', {
        conversation: conversationId,
        error: String(error),
      }),
    )
  }
}
