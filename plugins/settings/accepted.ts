import type { Settings, SettingKey, SettingsGiven } from './contract.js'

/** The settings that widen what conversations reach; a file that sets them may have come with the code. */
export type Reaching = Pick<Settings, 'network' | 'networkAllow' | 'networkOnly'>

/** Their values as a maintainer saved them through a call; before that the narrowest ones. */
export const NOTHING_ACCEPTED: Reaching = { network: 'own', networkAllow: [], networkOnly: false }
const KEYS = Object.keys(NOTHING_ACCEPTED) as (keyof Reaching)[]

/** What is accepted after a write. */
export const acceptedAfter = (before: Reaching, set: SettingsGiven, unset: readonly SettingKey[]): Reaching => {
  const gone = KEYS.filter(key => unset.includes(key)).map(key => [key, NOTHING_ACCEPTED[key]])
  const given = KEYS.flatMap(key => (set[key] === undefined ? [] : [[key, set[key]]]))
  return { ...before, ...Object.fromEntries([...gone, ...given]) }
}

/** The file's values, limited to what was accepted. */
export const narrowed = (said: Reaching, accepted: Reaching): Reaching => ({
  network: said.network === accepted.network ? said.network : 'own',
  networkAllow: said.networkAllow.filter(entry => accepted.networkAllow.includes(entry)),
  networkOnly: said.networkOnly || accepted.networkOnly,
})

/** What is not accepted, one sentence each. */
export const unaccepted = (said: Reaching, accepted: Reaching): string[] => {
  const now = narrowed(said, accepted)
  const until = 'does not count until a maintainer saves it'
  const wide = said.networkAllow.filter(entry => !now.networkAllow.includes(entry))
  return [
    ...(said.network === now.network ? [] : [`network: ${said.network} ${until} (sandbox network ${said.network})`]),
    ...wide.map(
      entry => `networkAllow: ${entry.slice(0, 260)} ${until} (sandbox network allow ${entry.slice(0, 260)})`,
    ),
    ...(said.networkOnly === now.networkOnly
      ? []
      : [`networkOnly: ${said.networkOnly} ${until} (sandbox network only off)`]),
  ]
}
