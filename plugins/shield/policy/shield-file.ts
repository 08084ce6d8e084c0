import { isDeepStrictEqual } from 'node:util'
import { Refusal, refuse, type Files } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { ConfigFile } from '../../../sdk/node/files/config-file.js'
import type { ManifestProblem } from '../../system/contract.js'
import type { ShieldPolicy } from '../contract.js'
import { openedValue, sealedValue, type Sealed } from '../tokens/sealed.js'
import type { VaultKey } from '../tokens/vault-key.js'
import { compiledShield, USUAL_SHIELD, type CompiledShield } from './compiled-shield.js'

/** Where people find the policy in the workspace. */
export const SHIELD_FILE = '.sandbox/config/shield.json'

const DOCUMENT = 'policy'
const LISTS = 'lists'
const MOST_FILE = 250_000

/** What an owner saved. */
interface SavedShield {
  /** Without the values of its lists. */
  readonly policy: ShieldPolicy
  /** The values, by the id of their list. */
  readonly lists?: Sealed
  /** Since when each list and pattern exists. */
  readonly since: { readonly [source: string]: number }
  /** The file of the workspace has this policy. */
  readonly published: boolean
}

const NOTHING: SavedShield = { policy: USUAL_SHIELD, since: {}, published: true }

/** The policy: what an owner saved is in force; the file in the workspace shows it to people. */
export class ShieldFile {
  readonly #files: Pick<Files, 'read' | 'write'>
  readonly #file: ConfigFile
  readonly #key: VaultKey
  readonly #lock = new KeyedMutex()
  #saved: SavedShield | undefined
  #compiled: CompiledShield | undefined

  constructor(workspace: string, files: Pick<Files, 'read' | 'write'>, key: VaultKey) {
    this.#files = files
    this.#file = new ConfigFile(workspace, SHIELD_FILE, 'policy of the privacy shield')
    this.#key = key
  }

  /** The policy in force without the values of its lists, which need the vault. */
  async outline(): Promise<ShieldPolicy> {
    return (await this.#load()).policy
  }

  /** Since when each list and pattern exists. */
  async since(): Promise<SavedShield['since']> {
    return (await this.#load()).since
  }

  /** The policy in force; refused while the vault with its lists is locked. */
  async current(): Promise<CompiledShield> {
    if (this.#compiled) return this.#compiled
    const { policy, lists } = await this.#load()
    const values = lists ? openedValue<{ [id: string]: string[] }>(await this.#key.get(), LISTS, lists) : {}
    const whole = { ...policy, lists: policy.lists.map(list => ({ ...list, values: values[list.id] ?? [] })) }
    const compiled = compiledShield(whole)
    if ('expected' in compiled) throw new Refusal('failed', `${compiled.path}: expected ${compiled.expected}`)
    this.#compiled = compiled
    return compiled
  }

  /** Writes what becomes of the policy; one write at a time, each on what the last one left. */
  change(next: (before: CompiledShield) => CompiledShield): Promise<CompiledShield> {
    return this.#lock.with(DOCUMENT, async () => {
      const [before, saved] = [await this.current(), await this.#load()]
      const compiled = next(before)
      const outline = withoutValues(compiled.policy)
      const size = JSON.stringify(outline).length
      if (size > MOST_FILE)
        refuse('too-large', `the policy without lists has ${size} characters: expected at most ${MOST_FILE}`)
      const held = compiled.policy.lists.some(({ values }) => values.length > 0)
      const key = held || compiled.policy.enabled ? await this.#key.make() : undefined
      const values = Object.fromEntries(compiled.policy.lists.map(list => [list.id, list.values]))
      const now: SavedShield = {
        policy: outline,
        ...(held && key && { lists: sealedValue(key, LISTS, values) }),
        since: sinceOf(compiled.policy, saved.since),
        published: false,
      }
      await this.#keep(now)
      failpoint('shield.policy.kept')
      try {
        await this.#publish(now)
      } catch (error) {
        await this.#keep(saved)
        throw error
      }
      this.#compiled = compiled
      return compiled
    })
  }

  /** Writes the file that a crash prevented. */
  async recover(): Promise<void> {
    await this.#lock.with(DOCUMENT, async () => {
      const saved = await this.#load()
      if (!saved.published) await this.#publish(saved)
    })
  }

  /** How the file of the workspace differs from what is in force. */
  async problems(): Promise<ManifestProblem[]> {
    const [{ policy, published }, { keys, wrong }] = [await this.#load(), await this.#file.load()]
    if (wrong !== undefined) return [{ kind: 'unreadable', detail: wrong }]
    if (!published || Object.keys(keys).length === 0 || isDeepStrictEqual(keys, plain(policy))) return []
    return [{ kind: 'unaccepted', detail: 'it was changed by hand and does not count until an owner saves the policy' }]
  }

  async #publish(saved: SavedShield): Promise<void> {
    const { mode } = await this.#file.load()
    await this.#file.save({ keys: plain(saved.policy), mode })
    await this.#keep({ ...saved, published: true })
  }

  async #keep(saved: SavedShield): Promise<void> {
    await this.#files.write(DOCUMENT, saved)
    this.#saved = saved
    this.#compiled = undefined
  }

  async #load(): Promise<SavedShield> {
    this.#saved ??= (await this.#files.read<SavedShield>(DOCUMENT)) ?? NOTHING
    return this.#saved
  }
}

/** The policy as it may be seen in the workspace. */
const withoutValues = (policy: ShieldPolicy): ShieldPolicy => ({
  ...policy,
  lists: policy.lists.map(list => ({ ...list, values: [] })),
})

const plain = (policy: ShieldPolicy): { [key: string]: unknown } => {
  const lists = policy.lists.map(({ values: _values, ...list }) => list)
  return JSON.parse(JSON.stringify({ ...policy, lists })) as { [key: string]: unknown }
}

const sinceOf = ({ lists, patterns }: ShieldPolicy, before: SavedShield['since']): SavedShield['since'] =>
  Object.fromEntries(
    [...lists.map(({ id }) => `list ${id}`), ...patterns.map(({ id }) => `pattern ${id}`)].map(source => [
      source,
      before[source] ?? Date.now(),
    ]),
  )
