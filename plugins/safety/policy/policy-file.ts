import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Refusal, refuse, type Store } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { ConfigFile, type KeptConfig } from '../../../sdk/node/files/config-file.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import type { ManifestProblem } from '../../system/contract.js'
import { safetyContract, type SafetyPolicy, type SafetyRule } from '../contract.js'
import { compiledPolicy, compiledRule, policyDigest, USUAL_POLICY, type CompiledPolicy } from './compiled-policy.js'

/** The file of the policy, from the workspace. */
export const POLICY_FILE = '.sandbox/config/safety.json'

/** What a maintainer saved through a call; a file that allows more may have come with the code. */
interface Accepted {
  /** Hashes of the rules that allow something. */
  readonly allows: readonly string[]
  /** The floor for content from outside was switched off. */
  readonly noFloor: boolean
}

const ACCEPTED = 'accepted'
const NOTHING: Accepted = { allows: [], noFloor: false }
const PARTS = Object.keys(USUAL_POLICY) as (keyof SafetyPolicy)[]

interface Loaded extends CompiledPolicy {
  readonly problems: readonly ManifestProblem[]
  readonly wrong?: string
}

/** The policy in a file that people edit too; read again when the file has changed. */
export class PolicyFile {
  readonly #path: string
  readonly #file: ConfigFile
  readonly #store: Pick<Store, 'get' | 'set'>
  readonly #lock = new KeyedMutex()
  #accepted: Accepted | undefined
  #loaded: Loaded | undefined
  #stamp = ''

  constructor(workspace: string, store: Pick<Store, 'get' | 'set'>) {
    this.#path = join(workspace, POLICY_FILE)
    this.#file = new ConfigFile(workspace, POLICY_FILE, 'safety policy')
    this.#store = store
  }

  /** The policy in force. */
  async current(): Promise<CompiledPolicy> {
    return this.#current()
  }

  /** Why parts of the file are not in force. */
  async problems(): Promise<ManifestProblem[]> {
    const { problems, wrong } = await this.#current()
    return wrong === undefined ? [...problems] : [{ kind: 'unreadable', detail: wrong }]
  }

  /** Writes what becomes of the policy; one write at a time, each on what the last one left. */
  change(next: (before: CompiledPolicy) => SafetyPolicy): Promise<CompiledPolicy> {
    return this.#lock.with(POLICY_FILE, async () => {
      const before = await this.#current()
      if (before.wrong !== undefined) refuse('unprocessable', before.wrong)
      const kept = await this.#file.load()
      const policy = next(before)
      const accepted: Accepted = {
        allows: policy.rules.filter(isAllow).map(policyDigest),
        noFloor: !policy.outsideFloor,
      }
      // Before the file: after a crash between the two, the file allows no more than it did.
      const both = {
        allows: [...new Set([...(await this.#acceptance()).allows, ...accepted.allows])],
        noFloor: accepted.noFloor,
      }
      await this.#accept(both)
      await this.#file.save({ ...kept, keys: { ...kept.keys, ...policy } })
      await this.#accept(accepted)
      return this.#current()
    })
  }

  async #accept(accepted: Accepted): Promise<void> {
    await this.#store.set(ACCEPTED, accepted)
    this.#accepted = accepted
    this.#stamp = ''
  }

  async #acceptance(): Promise<Accepted> {
    this.#accepted ??= (await this.#store.get<Accepted>(ACCEPTED)) ?? NOTHING
    return this.#accepted
  }

  async #current(): Promise<Loaded> {
    const stamp = await stampOf(this.#path)
    if (this.#loaded && stamp === this.#stamp) return this.#loaded
    const [kept, accepted] = [await this.#file.load(), await this.#acceptance()]
    this.#loaded = loadedFrom(kept, accepted)
    this.#stamp = stamp
    return this.#loaded
  }
}

const isAllow = ({ verdict }: SafetyRule): boolean => verdict === 'allow'

/** What changes with every write of a file. */
const stampOf = async (path: string): Promise<string> => {
  try {
    const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true })
    return `${ino} ${size} ${mtimeNs} ${ctimeNs}`
  } catch (error) {
    return codeOf(error) ?? String(error)
  }
}

const loadedFrom = ({ keys, wrong }: KeptConfig, { allows, noFloor }: Accepted): Loaded => {
  const problems: ManifestProblem[] = []
  const said: { -readonly [part in keyof SafetyPolicy]: SafetyPolicy[part] } = structuredClone(USUAL_POLICY)
  for (const part of PARTS) {
    const value = keys[part]
    if (value === undefined || part === 'rules') continue
    if (fits({ ...USUAL_POLICY, [part]: value })) Object.assign(said, { [part]: value })
    else problems.push({ kind: 'invalidEntry', detail: `${part}: its value does not fit, so the default holds` })
  }
  const seen = new Set<string>()
  const listed: readonly unknown[] = Array.isArray(keys['rules']) ? keys['rules'].slice(0, 200) : []
  said.rules = listed.flatMap((value, at) => {
    const problem = (kind: ManifestProblem['kind'], detail: string): SafetyRule[] => {
      problems.push({ kind, detail: `rules[${at}]: ${detail}` })
      return []
    }
    if (!fits({ ...USUAL_POLICY, rules: [value] }))
      return problem('invalidEntry', 'it is no rule, so it is not in force')
    // Checked by the contract just now.
    const rule = value as SafetyRule
    const compiled = compiledRule(rule, `rules[${at}]`)
    if ('expected' in compiled) return problem('invalidEntry', `expected ${compiled.expected}, found ${compiled.found}`)
    if (seen.has(rule.id)) return problem('invalidEntry', `the id ${rule.id} is taken, so it is not in force`)
    seen.add(rule.id)
    if (isAllow(rule) && rule.enabled !== false && !allows.includes(policyDigest(rule))) {
      problem('unaccepted', `${rule.id} allows something and does not count until a maintainer saves it`)
      return [{ ...rule, enabled: false }]
    }
    return [rule]
  })
  if (!said.outsideFloor && !noFloor) {
    problems.push({ kind: 'unaccepted', detail: 'outsideFloor: false does not count until a maintainer saves it' })
    said.outsideFloor = true
  }
  const compiled = compiledPolicy(said)
  if ('expected' in compiled) throw new Refusal('failed', `${compiled.path}: ${compiled.found}`)
  return { ...compiled, problems, ...(wrong !== undefined && { wrong }) }
}

const fits = (policy: unknown): boolean => safetyContract.request({ call: 'POST /safety', input: { policy } }).success
