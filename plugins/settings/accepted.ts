import { isDeepStrictEqual } from 'node:util'
import type {
  ActionRules,
  AdmissionFloor,
  CommandRules,
  Settings,
  SettingKey,
  SettingsGiven,
  SettingVerdict,
  Rule,
} from './contract.js'

/** The settings that allow something; a file that sets them may have come with the code. */
export type Reaching = Pick<Settings, 'network' | 'networkAllow' | 'networkOnly'> & {
  /** The model that texts of files are sent to. */
  readonly searchModel?: string
  /** Absent before the first write of it. */
  readonly admission?: AdmissionFloor
  readonly commandRules?: CommandRules
  readonly actionRules?: ActionRules
  readonly rules?: readonly Rule[]
}

/** Their values as a maintainer saved them through a call; before that the narrowest ones. */
export const NOTHING_ACCEPTED: Reaching = { network: 'own', networkAllow: [], networkOnly: false }
const KEYS = Object.keys(NOTHING_ACCEPTED) as Exclude<
  keyof Reaching,
  'searchModel' | 'admission' | 'commandRules' | 'actionRules' | 'rules'
>[]
const STRICTNESS: { readonly [verdict in SettingVerdict]: number } = { allow: 0, hold: 1, deny: 2 }

/** What may start by itself where nothing says otherwise. */
export const ALL_ADMITTED: AdmissionFloor = {
  ...{ schedule: 'allow', event: 'allow', listener: 'allow', webchat: 'allow' },
  ...{ workspace: 'allow', workflow: 'allow' },
}
const SOURCES = Object.keys(ALL_ADMITTED) as (keyof AdmissionFloor)[]

/** What is accepted after a write. */
export const acceptedAfter = (before: Reaching, set: SettingsGiven, unset: readonly SettingKey[]): Reaching => {
  const gone = KEYS.filter(key => unset.includes(key)).map(key => [key, NOTHING_ACCEPTED[key]])
  const given = KEYS.flatMap(key => (set[key] === undefined ? [] : [[key, set[key]]]))
  const {
    admission: floor,
    commandRules: commands,
    actionRules: actions,
    rules: standing,
    searchModel,
    ...rest
  } = before
  const kept = <R>(
    key: 'commandRules' | 'actionRules' | 'rules' | 'searchModel',
    given: R | undefined,
    had: R | undefined,
  ) => (unset.includes(key) ? undefined : (given ?? had))
  const rules = kept<readonly Rule[]>('rules', set.rules, standing)
  const model = kept('searchModel', set.searchModel, searchModel)
  const commandRules = kept('commandRules', set.commandRules, commands)
  const actionRules = kept('actionRules', set.actionRules, actions)
  const admission = unset.includes('admission')
    ? undefined
    : set.admission
      ? { ...ALL_ADMITTED, ...set.admission }
      : floor
  return {
    ...rest,
    ...Object.fromEntries([...gone, ...given]),
    ...(admission && { admission }),
    ...(commandRules && { commandRules }),
    ...(actionRules && { actionRules }),
    ...(rules && { rules }),
    ...(model && { searchModel: model }),
  }
}

/** How strict a rule is; a class without one is stricter than one that is allowed, because other rules apply to it. */
const strictness = (verdict: SettingVerdict | undefined): number => (verdict ? STRICTNESS[verdict] || -1 : 0)

type Rules = { readonly [key: string]: SettingVerdict | undefined }

/** Of each key the stricter rule. */
const stricterRules = <R extends object>(said: R, accepted: R): R => {
  const [one, other] = [said as Rules, accepted as Rules]
  const keys = [...new Set([...Object.keys(one), ...Object.keys(other)])]
  const rules = keys.map(key => [key, strictness(one[key]) >= strictness(other[key]) ? one[key] : other[key]] as const)
  // Each key was one of the two.
  return Object.fromEntries(rules.filter(([, verdict]) => verdict !== undefined)) as R
}

/** The file's values, limited to what was accepted. */
export const narrowed = (
  said: Required<Reaching>,
  accepted: Reaching,
): Pick<
  Settings,
  'network' | 'networkAllow' | 'networkOnly' | 'searchModel' | 'admission' | 'commandRules' | 'actionRules' | 'rules'
> => ({
  // What the file names would get the texts of the workspace.
  searchModel: said.searchModel === accepted.searchModel ? said.searchModel : '',
  network: said.network === accepted.network ? said.network : 'own',
  networkAllow: said.networkAllow.filter(entry => accepted.networkAllow.includes(entry)),
  networkOnly: said.networkOnly || accepted.networkOnly,
  admission: stricter(said.admission, { ...ALL_ADMITTED, ...accepted.admission }),
  commandRules: stricterRules(said.commandRules, accepted.commandRules ?? {}),
  actionRules: stricterRules(said.actionRules, accepted.actionRules ?? {}),
  // Rules run commands and let work in, and their order counts: the file changes none of them.
  rules: [...(accepted.rules ?? [])],
})

const stricter = (one: AdmissionFloor, other: AdmissionFloor): AdmissionFloor => {
  const of = <Source extends keyof AdmissionFloor>(source: Source): AdmissionFloor[Source] =>
    STRICTNESS[one[source]] >= STRICTNESS[other[source]] ? one[source] : other[source]
  return {
    ...{ schedule: of('schedule'), event: of('event'), listener: of('listener'), webchat: of('webchat') },
    ...{ workspace: of('workspace'), workflow: of('workflow') },
  }
}

/** What is not accepted, one sentence each. */
export const unaccepted = (said: Settings, accepted: Reaching): string[] => {
  const now = narrowed(said, accepted)
  const until = 'does not count until a maintainer saves it'
  const wide = said.networkAllow.filter(entry => !now.networkAllow.includes(entry))
  const admitted = SOURCES.filter(source => said.admission[source] !== now.admission[source])
  return [
    ...(said.network === now.network ? [] : [`network: ${said.network} ${until} (sandbox network ${said.network})`]),
    ...wide.map(
      entry => `networkAllow: ${entry.slice(0, 260)} ${until} (sandbox network allow ${entry.slice(0, 260)})`,
    ),
    ...(said.networkOnly === now.networkOnly
      ? []
      : [`networkOnly: ${said.networkOnly} ${until} (sandbox network only off)`]),
    ...(['commandRules', 'actionRules'] as const).flatMap(key => {
      const [wanted, held]: Rules[] = [said[key] as Rules, now[key] as Rules]
      return Object.keys({ ...wanted, ...held })
        .filter(rule => wanted![rule] !== held![rule])
        .map(rule => `${key}: ${wanted![rule] ?? 'no rule'} for ${rule.slice(0, 121)} ${until}`)
    }),
    ...(said.searchModel === now.searchModel ? [] : [`searchModel: ${said.searchModel} ${until}`]),
    ...rulesApart(said.rules, now.rules).map(id => `rules: ${id} ${until}`),
    ...admitted.map(source => `admission: ${said.admission[source]} for ${source} ${until}`),
  ]
}

/** The rules that a file adds, changes or lacks; where it only orders them otherwise, their order. */
const rulesApart = (said: readonly Rule[], held: readonly Rule[]): string[] => {
  if (isDeepStrictEqual(said, held)) return []
  const other = (rules: readonly Rule[], rule: Rule) =>
    !isDeepStrictEqual(
      rules.find(({ id }) => id === rule.id),
      rule,
    )
  const ids = [
    ...said.filter(rule => other(held, rule)).map(({ id }) => id),
    ...held.filter(({ id }) => !said.some(rule => rule.id === id)).map(({ id }) => `the removal of ${id}`),
  ]
  return ids.length > 0 ? ids : ['their other order']
}
