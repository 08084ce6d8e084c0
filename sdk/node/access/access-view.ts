import { accessTo, commonReach, type Access, type Reach } from '../../reach.js'
import { refuse } from '../../refusal.js'
import type { Caller } from '../../types.js'
import { WorkspacePaths } from '../files/workspace-paths.js'

/** What a caller sees of the workspace, as it was when asked. */
export interface AccessView {
  readonly reach: Reach
  /** Whether a path lies inside, by its real location; the workspace root when left out. */
  sees(path?: string): Promise<boolean>
  /** What may be done at a path; undefined: it does not exist for the caller. */
  access(path?: string): Promise<Access | undefined>
  /** The same as far as it lies in these folders; undefined: all of it. */
  within(folders: Reach): AccessView
}

/** The ids of the areas a caller is limited to; undefined: it reaches everything. */
export const limitsOf = ({
  kind,
  role,
  areas,
}: Pick<Caller, 'kind' | 'role' | 'areas'>): readonly string[] | undefined =>
  kind === 'token' || role === 'maintainer' || role === 'owner' ? undefined : areas

/** What somebody with a reach sees. */
export const accessViewWith = (workspace: string, reach: Reach): AccessView => {
  const places = new WorkspacePaths(workspace)
  const access = async (path?: string): Promise<Access | undefined> => {
    if (!reach) return 'work'
    const place = await places.of(path)
    return place === undefined ? undefined : accessTo(reach, place)
  }
  const sight: AccessView = {
    reach,
    access,
    sees: async path => (await access(path)) !== undefined,
    within: folders => (folders ? accessViewWith(workspace, commonReach(reach, folders)) : sight),
  }
  return sight
}

/** Refuses work in what is held for reading only. */
export const refuseReading = (what: string): never =>
  refuse('forbidden', `${what} lies in an area held for reading only: it takes an area held for work, or a maintainer`)
