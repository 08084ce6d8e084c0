import { accessTo, commonReach, type Access, type Reach } from '../../reach.js'
import { refuse } from '../../refusal.js'
import type { Caller } from '../../types.js'
import { WorkspacePaths } from '../files/workspace-paths.js'

/** What a caller may see of the workspace, as of its creation. */
export interface AccessView {
  readonly reach: Reach
  /** The caller is a control token, which sees no accounts. */
  readonly isToken?: boolean
  /** Whether a path is visible, by its real location; default: the workspace root. */
  sees(path?: string): Promise<boolean>
  /** The access to a path; undefined: it does not exist for the caller. */
  access(path?: string): Promise<Access | undefined>
  /** This view limited to these folders; undefined: the same view. */
  within(folders: Reach): AccessView
}

/** The ids of the areas that a caller is limited to; undefined: the whole workspace. */
export const limitsOf = ({
  kind,
  role,
  areas,
}: Pick<Caller, 'kind' | 'role' | 'areas'>): readonly string[] | undefined =>
  kind === 'token' || role === 'maintainer' || role === 'owner' ? undefined : areas

/** The access view of a reach. */
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

/** Refuses a write in an area held for reading only. */
export const refuseReading = (what: string): never =>
  refuse('forbidden', `${what} lies in an area that you may only read: ask a maintainer for an area with access work`)
