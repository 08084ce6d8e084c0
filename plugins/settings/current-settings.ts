import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { type Host, refuse, type Store } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { nearest } from '../../sdk/node/nearest.js'
import type { ManifestProblem } from '../system/contract.js'
import { acceptedAfter, ALL_ADMITTED, narrowed, NOTHING_ACCEPTED, unaccepted, type Reaching } from './accepted.js'
import {
  settings,
  type ActionRules,
  type Rule,
  type SettingKey,
  type Settings,
  type SettingsEvents,
  type SettingsGiven,
} from './contract.js'
import { wrongAllowed } from './network-allow.js'
import { wrongAction } from './action-rules.js'
import { wrongCleaners } from './cleaner-choice.js'
import { wrongRule } from './rules/rule-checks.js'
import type { KeptConfig } from '../../sdk/node/files/config-file.js'
import { FILE, type SettingsFile } from './settings-file.js'

/** The defaults, for missing and invalid values. */
export const DEFAULTS: Settings = {
  stableSystemPrompt: false,
  terseOutput: false,
  terseHoldout: 0,
  iqSearch: false,
  iqSearchHoldout: 0,
  workspaceMap: false,
  outputCleaners: 'off',
  outputHoldout: 0,
  draftLandedMessages: true,
  changelogRepos: [],
  skills: [],
  hashlineEdits: false,
  systemPromptMode: 'core',
  systemPrompt: '',
  quickModel: [],
  agentRunModels: [],
  agentRunEffort: '',
  autoTier: 'shadow',
  autoTierEagerness: 'balanced',
  autoFastModels: [],
  searchModel: '',
  rules: [],
  agentRetentionDays: 3,
  autoResumeOnRestart: false,
  resumeAfterOutage: false,
  subagentsAtOnce: 20,
  subagentsPerTurn: 200,
  subagentDepth: 3,
  network: 'own',
  networkAllow: [],
  networkOnly: false,
  admission: ALL_ADMITTED,
  automationFailureLimit: 0,
  commandRules: {},
  actionRules: {},
}
const MOST_TOLD = 20
/** Where the accepted values are stored: in the daemon's store, which code cannot bring along. */
const ACCEPTED = 'accepted'

/** The revision of the settings: the `etag` of a read. */
export const revisionOf = (current: Settings): string =>
  createHash('sha256').update(JSON.stringify(current)).digest('base64url').slice(0, 22)

/** What one write does. */
export interface SettingsChange {
  readonly set: SettingsGiven
  /** Parts of an object that are left out keep their values, as in a patch. */
  readonly merges?: boolean
  readonly unset?: readonly SettingKey[]
  /** Whether the write still holds good for what it finds; left out, it always does. */
  readonly holds?: (revision: string) => boolean
  readonly by: string
}

/**
 * The settings in force. They are read from the file each time, so that a person's edit takes effect at once; except
 * for values that widen what conversations reach, which must be saved through a call.
 */
export class CurrentSettings {
  readonly #file: Pick<SettingsFile, 'load' | 'save'>
  readonly #store: Pick<Store, 'get' | 'set'>
  readonly #log: Pick<Host['log'], 'warn'>
  readonly #changed: (what: SettingsEvents['settings.changed']) => void
  readonly #turns = new KeyedMutex()
  #accepted: Reaching | undefined
  #seen: Settings | undefined
  #told = ''

  constructor(
    file: Pick<SettingsFile, 'load' | 'save'>,
    store: Pick<Store, 'get' | 'set'>,
    log: Pick<Host['log'], 'warn'>,
    changed: (what: SettingsEvents['settings.changed']) => void,
  ) {
    this.#file = file
    this.#store = store
    this.#log = log
    this.#changed = changed
  }

  /** Every setting as it holds now. */
  read(): Promise<Settings> {
    return this.#turns.with(FILE, async () => this.#inForce(await this.#file.load(), await this.#acceptance()))
  }

  /** The current problems of the file. */
  async problems(): Promise<ManifestProblem[]> {
    return this.#turns.with(FILE, async () => problemsOf(await this.#file.load(), await this.#acceptance()))
  }

  /** Writes what changes and answers every setting; one write at a time, each on what the last one left. */
  change({ set: given, merges = false, unset = [], holds, by }: SettingsChange): Promise<Settings> {
    return this.#turns.with(FILE, async () => {
      const kept = await this.#file.load()
      const accepted = await this.#acceptance()
      const before = this.#inForce(kept, accepted)
      if (kept.wrong !== undefined) refuse('unprocessable', kept.wrong)
      if (holds && !holds(revisionOf(before))) {
        refuse('conflict', 'the settings have changed since that revision, so nothing was written: read them again')
      }
      const floor = given.admission && { ...(merges ? before.admission : ALL_ADMITTED), ...given.admission }
      const set = { ...given, ...(floor && { admission: floor }) }
      const rest = Object.entries(kept.keys).filter(([key]) => !unset.some(gone => gone === key))
      const keys = { ...Object.fromEntries(rest), ...set }
      const next = acceptedAfter(accepted, set, unset)
      // Before the file: after a crash between the two, the narrower values apply.
      if (!isDeepStrictEqual(next, accepted)) await this.#accept(next)
      if (JSON.stringify(keys) !== JSON.stringify(kept.keys))
        await this.#file.save({ ...kept, keys }).catch(async error => {
          await this.#accept(accepted)
          throw error
        })
      return this.#inForce({ ...kept, keys }, next, by)
    })
  }

  async #accept(next: Reaching): Promise<void> {
    await this.#store.set(ACCEPTED, next)
    this.#accepted = next
  }

  async #acceptance(): Promise<Reaching> {
    this.#accepted ??= (await this.#store.get<Reaching>(ACCEPTED)) ?? NOTHING_ACCEPTED
    return this.#accepted
  }

  /** The settings that the stored keys result in; reports changes and invalid values. */
  #inForce(kept: KeptConfig, accepted: Reaching, by?: string): Settings {
    const problems = problemsOf(kept, accepted).map(({ detail }) => detail)
    const told = problems.join('\n')
    if (told && told !== this.#told)
      this.#log.warn(`${FILE} has entries that do not take effect`, { problems: problems.slice(0, MOST_TOLD) })
    this.#told = told
    const said = fitting(kept)
    const now: Settings = { ...said, ...narrowed(said, accepted) }
    const seen = this.#seen
    this.#seen = now
    const keys = seen ? KEYS.filter(key => !isDeepStrictEqual(now[key], seen[key])) : []
    if (keys.length > 0) this.#changed({ keys, ...(by !== undefined && { by }) })
    return structuredClone(now)
  }
}

const KEYS = Object.keys(DEFAULTS) as SettingKey[]

/** The contract's own limits, so that the file may hold just what a call may write. */
const fits = (key: string, value: unknown): boolean =>
  settings.request({ call: 'POST /settings', input: { [key]: value } }).success
  && (key !== 'networkAllow' || wrongAllowed(value as string[]).length === 0)
  && (key !== 'actionRules' || wrongAction(value as ActionRules) === undefined)
  && (key !== 'outputCleaners' || wrongCleaners(value as string) === undefined)
  && (key !== 'rules' || wrongRule(value as Rule[]) === undefined)

/** What the file says, with the defaults where it says nothing that fits. */
const fitting = ({ keys }: KeptConfig): Settings => {
  const said: SettingsGiven = Object.fromEntries(Object.entries(keys).filter(([key, value]) => fits(key, value)))
  return { ...DEFAULTS, ...said, admission: { ...ALL_ADMITTED, ...said.admission } }
}

const problemsOf = (kept: KeptConfig, accepted: Reaching): ManifestProblem[] => {
  const { keys, wrong } = kept
  if (wrong !== undefined) return [{ kind: 'unreadable', detail: wrong }]
  const wide = unaccepted(fitting(kept), accepted).map((detail): ManifestProblem => ({ kind: 'unaccepted', detail }))
  return [
    ...wide,
    ...Object.entries(keys)
      .filter(([key, value]) => !fits(key, value))
      .map(([key]): ManifestProblem => {
        const setting = KEYS.find(one => one === key)
        if (setting)
          return {
            kind: 'invalidEntry',
            detail: `${setting}: its value does not fit, so ${
              setting === 'rules' ? 'those saved last hold' : `the default ${JSON.stringify(DEFAULTS[setting])} holds`
            }`,
          }
        const suggestion = nearest(key, KEYS)
        return {
          kind: 'unknownKey',
          detail: `${key.slice(0, 80)}: no setting of this sandbox`,
          ...(suggestion !== undefined && { suggestion }),
        }
      }),
  ]
}
