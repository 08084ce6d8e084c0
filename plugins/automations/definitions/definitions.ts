import { refuse, type Store } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { ConfigFile } from '../../../sdk/node/files/config-file.js'
import { orderedHash } from '../../../sdk/node/files/ordered-hash.js'
import { automations, type Automation, type AutomationProblem } from '../contract.js'
import { cronProblem } from '../schedule/cron.js'

/** The file of automations, from the workspace. */
export const AUTOMATIONS_FILE = '.sandbox/config/automations.json'
/** Ids that are words of routes. */
export const ROUTE_WORDS: ReadonlySet<string> = new Set(['catalog', 'pending', 'preview', 'turn'])

const MOST = 200
const MOST_BYTES = 256 * 1024
const ACCEPTED = 'accepted'

/** What a maintainer saved: everything but the switch, by its hash, and whether it was on. */
interface Accepted {
  readonly [id: string]: { readonly hash: string; readonly enabled: boolean }
}

/** An automation as the file has it. */
export interface Definition {
  readonly automation: Automation
  /** Whether a maintainer saved exactly this; otherwise it may have come with the code, and does not fire. */
  readonly accepted: boolean
}

/** The content of the file. */
export interface StoredDefinitions {
  readonly all: ReadonlyMap<string, Definition>
  readonly problems: readonly AutomationProblem[]
  /** Why the whole file cannot be used. */
  readonly wrong?: string
}

/**
 * The automations, in a file that git versions and people edit too: read at each use and written in one step. What they
 * may do was saved through a call, which the daemon's store remembers.
 */
export class DefinitionFile {
  readonly #file: ConfigFile
  readonly #store: Pick<Store, 'get' | 'set'>
  readonly #lock = new KeyedMutex()
  #accepted: Accepted | undefined

  constructor(workspace: string, store: Pick<Store, 'get' | 'set'>) {
    this.#file = new ConfigFile(workspace, AUTOMATIONS_FILE, 'automations')
    this.#store = store
  }

  async read(): Promise<StoredDefinitions> {
    const { keys, wrong } = await this.#file.load()
    const accepted = await this.#acceptances()
    const all = new Map<string, Definition>()
    const problems: AutomationProblem[] = []
    for (const [id, value] of Object.entries(keys)) {
      const automation = automationOf(id, value)
      if (typeof automation === 'string') problems.push({ id: id.slice(0, 60), message: automation })
      else all.set(id, { automation, accepted: isAccepted(automation, accepted) })
    }
    return { all, problems, ...(wrong !== undefined && { wrong }) }
  }

  /** An automation; refuses an unknown id. */
  async get(id: string): Promise<Definition> {
    return (await this.read()).all.get(id) ?? refuseUnknownAutomation(id)
  }

  /** Writes an automation whole; from then on it is accepted. */
  put(automation: Automation): Promise<void> {
    return this.#lock.with(AUTOMATIONS_FILE, async () => {
      const { id, ...written } = automation
      await this.#edit(keys => {
        if (!Object.hasOwn(keys, id) && Object.keys(keys).length >= MOST)
          refuse('unprocessable', `there are ${MOST} automations already: remove one first`)
        return { ...keys, [id]: written }
      })
      // After the file: a crash between the two leaves an automation that does not fire.
      await this.#accept(id, { hash: definitionHash(automation), enabled: automation.enabled })
    })
  }

  /** Switches an automation; what nobody saved stays unaccepted. */
  setEnabled(id: string, enabled: boolean): Promise<void> {
    return this.#lock.with(AUTOMATIONS_FILE, async () => {
      const { automation, accepted } = await this.get(id)
      const { id: _id, ...written } = { ...automation, enabled }
      await this.#edit(keys => ({ ...keys, [id]: written }))
      if (accepted) await this.#accept(id, { hash: definitionHash(automation), enabled })
    })
  }

  remove(id: string): Promise<void> {
    return this.#lock.with(AUTOMATIONS_FILE, async () => {
      await this.get(id)
      await this.#accept(id, undefined)
      await this.#edit(({ [id]: _gone, ...others }) => others)
    })
  }

  sweep(): Promise<void> {
    return this.#file.sweep()
  }

  async #acceptances(): Promise<Accepted> {
    this.#accepted ??= (await this.#store.get<Accepted>(ACCEPTED)) ?? {}
    return this.#accepted
  }

  async #accept(id: string, as: Accepted[string] | undefined): Promise<void> {
    const { [id]: _before, ...others } = await this.#acceptances()
    const next = as ? { ...others, [id]: as } : others
    await this.#store.set(ACCEPTED, next)
    this.#accepted = next
  }

  async #edit(next: (keys: { readonly [id: string]: unknown }) => { readonly [id: string]: unknown }): Promise<void> {
    const kept = await this.#file.load()
    if (kept.wrong !== undefined) refuse('unprocessable', kept.wrong)
    const keys = next(kept.keys)
    const bytes = Buffer.byteLength(JSON.stringify(keys, undefined, 2))
    if (bytes >= MOST_BYTES)
      refuse('too-large', `the automations would have ${bytes} bytes: expected less than ${MOST_BYTES}`)
    await this.#file.save({ keys, mode: kept.mode })
  }
}

/** Refuses an id that no automation has. */
export const refuseUnknownAutomation = (id: string): never =>
  refuse('not-found', `there is no automation ${JSON.stringify(id.slice(0, 60))}: GET /automations lists them`)

/** A hash of everything but the switch, whatever the order of its fields. */
export const definitionHash = ({ enabled: _switch, ...rest }: Automation): string => orderedHash(rest)

const isAccepted = (automation: Automation, accepted: Accepted): boolean => {
  const saved = Object.hasOwn(accepted, automation.id) ? accepted[automation.id] : undefined
  return saved !== undefined && saved.hash === definitionHash(automation) && (saved.enabled || !automation.enabled)
}

/** An automation as the file has it, or why it is none. */
const automationOf = (id: string, value: unknown): Automation | string => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'expected an automation'
  const checked = automations.request({ call: 'POST /automations', input: { ...value, id } })
  if (!checked.success) return `${checked.errors[0]!.path.replace('$input.input.', '')} does not fit`
  const automation = checked.data.input as Automation
  if (ROUTE_WORDS.has(id)) return `the id ${id} is reserved`
  const { trigger } = automation
  const problem = trigger.kind === 'schedule' ? cronProblem(trigger) : undefined
  return problem ?? automation
}
