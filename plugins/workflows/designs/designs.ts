import { refuse, type Store } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { ConfigEntries, type StoredEntries } from '../../../sdk/node/files/config-entries.js'
import { orderedHash } from '../../../sdk/node/files/ordered-hash.js'
import { workflowsContract, type Workflow } from '../contract.js'
import { assertFaultless } from './faults.js'

/** The file of designs, from the workspace. */
export const WORKFLOWS_FILE = '.sandbox/config/workflows.json'

const ACCEPTED = 'accepted'

/** The hash of each design as a maintainer saved it. */
interface AcceptedDesigns {
  readonly [id: string]: string
}

/**
 * The designs, in a file that git versions and people edit too. What runs commands, or starts without a person, was
 * saved through a call, which the daemon's store remembers: otherwise it may have come with the code.
 */
export class Designs {
  readonly #entries: ConfigEntries<Workflow>
  readonly #store: Pick<Store, 'get' | 'set'>
  readonly #lock = new KeyedMutex()
  #accepted: AcceptedDesigns | undefined

  constructor(workspace: string, store: Pick<Store, 'get' | 'set'>) {
    this.#entries = new ConfigEntries(workspace, {
      ...{ file: WORKFLOWS_FILE, one: 'workflow', many: 'workflows', list: 'GET /workflows' },
      parse: designOf,
    })
    this.#store = store
  }

  read(): Promise<StoredEntries<Workflow>> {
    return this.#entries.read()
  }

  /** A design; refuses an unknown id. */
  get(id: string): Promise<Workflow> {
    return this.#entries.get(id)
  }

  async find(id: string): Promise<Workflow | undefined> {
    return (await this.#entries.read()).entries.find(each => each.id === id)
  }

  /** Writes a design; from then on it is accepted. */
  async put(workflow: Workflow, create: boolean): Promise<void> {
    assertFaultless(workflow, 'workflow.')
    await this.#lock.with(ACCEPTED, async () => {
      await this.#entries.put(workflow, create)
      // After the file: a crash between the two leaves a design that does not start.
      await this.#accept(workflow.id, orderedHash(workflow))
    })
  }

  remove(id: string): Promise<void> {
    return this.#lock.with(ACCEPTED, async () => {
      await this.#entries.remove(id)
      await this.#accept(id, undefined)
    })
  }

  /** Refuses to start a design that runs commands or has a gate, unless a maintainer saved exactly this. */
  async assertAccepted(workflow: Workflow): Promise<void> {
    if (await this.isAccepted(workflow)) return
    const { id } = workflow
    refuse('conflict', `${id} came with the code, or its file was edited: a maintainer saves it with POST /workflows`)
  }

  /** Whether a design may start. */
  async isAccepted(workflow: Workflow): Promise<boolean> {
    if (!actsAlone(workflow)) return true
    const accepted = await this.#acceptances()
    return Object.hasOwn(accepted, workflow.id) && accepted[workflow.id] === orderedHash(workflow)
  }

  /** Removes the temporary files of interrupted writes. */
  sweep(): Promise<void> {
    return this.#entries.sweep()
  }

  async #acceptances(): Promise<AcceptedDesigns> {
    this.#accepted ??= (await this.#store.get<AcceptedDesigns>(ACCEPTED)) ?? {}
    return this.#accepted
  }

  async #accept(id: string, hash: string | undefined): Promise<void> {
    const { [id]: _before, ...others } = await this.#acceptances()
    const next = hash === undefined ? others : { ...others, [id]: hash }
    await this.#store.set(ACCEPTED, next)
    this.#accepted = next
  }
}

/** Whether it runs commands of its own, or starts without a person. */
const actsAlone = ({ steps, gate }: Workflow): boolean =>
  gate !== undefined || steps.some(({ checks }) => checks.some(({ kind }) => kind === 'command'))

const designOf = (id: string, value: object): Workflow | string => {
  const call = { call: 'POST /workflows', input: { workflow: { ...value, id }, create: true } }
  const checked = workflowsContract.request(call)
  if (!checked.success) return `${checked.errors[0]!.path.replace('$input.input.workflow.', '')} does not fit`
  return (checked.data.input as { workflow: Workflow }).workflow
}
