import { linkOnDisk, wayOf } from '../../../sdk/node/files/links.js'
import { contains } from '../../../sdk/node/files/paths.js'
import { excludedPaths } from '../work/excluded-paths.js'

/** What a link holds, by its absolute path: those that are about to be made, before those on the disk. */
export interface PlannedLinks {
  readonly [path: string]: string
}

/**
 * Whether a link leads out of the workspace, or into what there is nobody's work, once every link on its way is
 * followed.
 *
 * `path` is where the link is to be; the folders above it are real ones.
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
