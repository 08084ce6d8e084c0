import { isGitName, isOwnName } from '../../../sdk/node/files/closed-names.js'
import { linkOnDisk } from '../../../sdk/node/files/links.js'
import { strayLinks } from './link-plan.js'
import { IN, type BundleEntry, type BundleManifest } from './manifest.js'

/** Why a file or link of the bundle, by its path in the workspace, is not restored; undefined: it is. */
export type ReasonAgainst = (path: string) => string | undefined

const CONFIG = '.sandbox/config/'

/** The name at the top of the workspace that a path begins with. */
export const topOf = (path: string): string => path.split('/', 1)[0]!

/**
 * The folders that a bundle of some repositories replaces whole; undefined: it replaces names at the top of the
 * workspace.
 */
export const unitsOf = ({
  whole,
  repositories,
}: Pick<BundleManifest, 'whole' | 'repositories'>): string[] | undefined => {
  const repos = repositories.map(({ repo }) => repo)
  if (whole || repos.includes('root')) return undefined
  return repos.filter(repo => !repos.some(other => repo.startsWith(`${other}/`)))
}

/** Why a path is never restored. */
export const reasonAgainstName = ({ path, link }: Pick<BundleEntry, 'path' | 'link'>): string | undefined => {
  const parts = path.split('/')
  if (parts.some(isGitName)) return 'it belongs to git'
  if (!isOwnName(parts[0]!)) return undefined
  if (!path.startsWith(CONFIG)) return "it is the sandbox's own"
  return link === undefined ? undefined : 'the configuration must not contain links'
}

/** Decides for every file and link of a bundle whether it is restored. */
export const reasonsAgainst = async (manifest: BundleManifest, workspace: string): Promise<ReasonAgainst> => {
  const units = unitsOf(manifest)
  const covered = coveredBy(units)
  const reasons = new Map<string, string>()
  const links = new Map<string, string>()
  const solid = manifest.repositories.flatMap(({ repo }) => (repo === 'root' ? [] : [repo]))
  for (const entry of manifest.entries) {
    if (!entry.path.startsWith(IN.workspace)) continue
    const [path, { link }] = [entry.path.slice(IN.workspace.length), entry]
    const reason =
      reasonAgainstName({ ...entry, path }) ?? (covered(path) ? undefined : 'it is in no repository of the bundle')
    if (reason !== undefined) reasons.set(path, reason)
    else if (link === undefined) solid.push(path)
    else links.set(path, link)
  }
  const replaced = units === undefined ? new Set(solid.map(topOf)) : undefined
  const stays = (path: string): boolean => {
    if (isOwnName(topOf(path))) return true
    if (manifest.whole) return false
    return replaced ? !replaced.has(topOf(path)) : !covered(path)
  }
  for (const [path, reason] of await strayLinks({ workspace, solid, links, stays }, linkOnDisk))
    reasons.set(path, reason)
  return path => reasons.get(path)
}

/** Whether a path lies in one of the folders that a bundle replaces. */
const coveredBy = (units: readonly string[] | undefined): ((path: string) => boolean) => {
  if (!units) return () => true
  const all = new Set(units)
  return path => {
    for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1))
      if (all.has(path.slice(0, end))) return true
    return false
  }
}
