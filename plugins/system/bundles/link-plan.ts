import { join, relative } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import { foldedName } from '../../../sdk/node/files/closed-names.js'
import { wayOf } from '../../../sdk/node/files/links.js'
import { contains } from '../../../sdk/node/files/paths.js'

/** What the workspace will hold after a restore; paths are relative to its root. */
export interface LinkPlan {
  /** The workspace's real path. */
  readonly workspace: string
  /** Files and repositories that are restored. */
  readonly solid: Iterable<string>
  /** Links to restore, with the target of each. */
  readonly links: ReadonlyMap<string, string>
  /** Whether the restore keeps what is at a path now. */
  readonly stays: (path: string) => boolean
}

const OUT = 'it is a link that leads out of the workspace'
const CIRCLE = 'it is a link that leads in a circle'
const TWIN = 'it is a link, or leads through one, whose name some disks confuse with another one of the bundle'
/** The most characters of paths that are walked to resolve all links. */
const MOST_WALKED = 32 * 1024 * 1024
const PAUSE = 256 * 1024

/**
 * Finds the links of a bundle that must not be restored, each with the reason: resolved through all links that will
 * exist, of the bundle and of the workspace, they leave the workspace at some step or form a loop.
 *
 * Links that are left out are followed too, so that links through them are left out as well.
 *
 * @param linkNow What the link at an absolute path of the workspace holds now.
 */
export const strayLinks = async (
  { workspace, solid, links, stays }: LinkPlan,
  linkNow: (path: string) => Promise<string | undefined>,
): Promise<ReadonlyMap<string, string>> => {
  const stray = new Map<string, string>()
  if (links.size === 0) return stray
  const fold = folding()
  const spelt = Map.groupBy(links.keys(), fold)
  for (const path of twins([...solid, ...links.keys()], fold, spelt)) stray.set(path, TWIN)
  const withinOf = (place: string): string => relative(workspace, place)
  let [walked, rested] = [0, 0]
  const linkAt = async (place: string): Promise<string | undefined> => {
    const path = withinOf(place)
    return links.get(path) ?? (stays(path) ? linkNow(place) : undefined)
  }
  const reasonOf = async (path: string, link: string): Promise<string | undefined> => {
    for await (const place of wayOf(join(workspace, path), link, linkAt)) {
      if (place === undefined) return CIRCLE
      if (!contains(workspace, place)) return OUT
      const inner = withinOf(place)
      if (spelt.get(fold(inner))?.some(other => other !== inner)) return TWIN
      walked += place.length
      if (walked > MOST_WALKED)
        refuse('too-large', 'the links of the bundle lead too far to be followed: pack it without them')
      if (walked < rested + PAUSE) continue
      rested = walked
      await new Promise<void>(resolve => setImmediate(resolve))
    }
    return undefined
  }
  for (const [path, link] of links) {
    const reason = await reasonOf(path, link)
    if (reason !== undefined) stray.set(path, reason)
  }
  return stray
}

/** The form under which a disk that ignores case or accents may find a path. */
const folding = (): ((path: string) => string) => {
  const known = new Map<string, string>()
  const name = (segment: string): string => {
    const folded = known.get(segment) ?? foldedName(segment)
    known.set(segment, folded)
    return folded
  }
  return path => path.split('/').map(name).join('/')
}

/** The segments of links as such a disk reads them, and at the last one the link. */
interface LinkNode {
  readonly below: Map<string, LinkNode>
  link?: string
}

/** Links whose name such a disk confuses with another entry of the bundle or a folder above it. */
const twins = (
  paths: readonly string[],
  fold: (segment: string) => string,
  spelt: ReadonlyMap<string, readonly string[]>,
): Set<string> => {
  const found = new Set<string>()
  const root: LinkNode = { below: new Map() }
  for (const [folded, [link, ...others]] of spelt) {
    if (others.length > 0) for (const one of [link!, ...others]) found.add(one)
    let node = root
    for (const segment of folded.split('/')) {
      const next: LinkNode = node.below.get(segment) ?? { below: new Map() }
      node.below.set(segment, next)
      node = next
    }
    node.link = link!
  }
  // Only as far as a link has the same folders: paths may have thousands of others.
  for (const path of paths) {
    let end = -1
    for (let node: LinkNode | undefined = root; node && end < path.length;) {
      const from = end + 1
      const slash = path.indexOf('/', from)
      end = slash < 0 ? path.length : slash
      node = node.below.get(fold(path.slice(from, end)))
      if (node?.link !== undefined && node.link !== path.slice(0, end)) found.add(node.link)
    }
  }
  return found
}
