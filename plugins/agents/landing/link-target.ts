import { linkOnDisk, wayOf } from '../../../sdk/node/files/links.js'
import { contains } from '../../../sdk/node/files/paths.js'
import { excludedPaths } from '../work/excluded-paths.js'

/** The targets of links that the landing will create, by absolute path; they take precedence over those on the disk. */
export interface PlannedLinks {
  readonly [path: string]: string
}

/**
 * Whether a link leads out of the workspace or into an excluded path, after following all links.
 *
 * `path` is the path of the link; its parent folders are not links.
 */
export const leadsOut = async (
  workspace: string,
  path: string,
  target: string,
  planned: PlannedLinks,
): Promise<boolean> => {
  const linkAt = async (place: string) => (Object.hasOwn(planned, place) ? planned[place] : linkOnDisk(place))
  let end: string | undefined
  for await (const place of wayOf(path, target, linkAt)) end = place
  if (end === undefined || !contains(workspace, end)) return true
  const inner = end.slice(workspace.length).replace(/^\//, '')
  return inner !== '' && excludedPaths('root', inner)
}
