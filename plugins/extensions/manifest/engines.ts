import semver from 'semver'

/** The version of the host API that extensions are written for. */
export const HOST_API_VERSION = '1.0.0'

/** Keys of `engines` that name this host. */
const HOSTS = new Set(['sandbox', 'intentic'])

/** The range of host versions in `engines`, or the error in it; undefined: any host. */
export const engineRange = (engines: unknown): { range?: string; wrong?: string } => {
  if (engines === undefined) return {}
  if (typeof engines !== 'object' || engines === null || Array.isArray(engines))
    return { wrong: 'engines: expected an object with the key sandbox' }
  const entries = Object.entries(engines as { [host: string]: unknown })
  const [host, range] = entries[0] ?? []
  if (entries.length !== 1 || host === undefined || !HOSTS.has(host))
    return { wrong: `engines: expected the one key sandbox, found ${entries.map(([key]) => key).join(', ') || 'none'}` }
  if (typeof range !== 'string' || range.length > 100)
    return { wrong: `engines.${host}: expected a range of versions such as ^1.0, at most 100 characters` }
  return { range }
}

/** Whether a range includes this host; an invalid range includes none. */
export const admitsHost = (range: string | undefined): boolean =>
  range === undefined || semver.satisfies(HOST_API_VERSION, range, { includePrerelease: true })

/** Whether a text is a semantic version. */
export const isVersion = (text: string): boolean => semver.valid(text) !== null

/** Whether a version is higher than another one; false if one of them is invalid. */
export const isHigher = (version: string, than: string): boolean =>
  isVersion(version) && isVersion(than) && semver.gt(version, than)

/** Whether a version is in a range; false if one of them is invalid. */
export const isInRange = (version: string, range: string): boolean =>
  semver.satisfies(version, range, { includePrerelease: true })
