import type { tags } from 'typia'
import type { Text } from '../../../sdk/types.js'

/** A model, as `<provider>:<model>`. */
export type ModelKey = string & tags.Pattern<'^[^\\s:]+:\\S.*$'> & tags.MaxLength<200>

/** One model of an order. */
export interface ModelRung {
  provider: string
  model: string
  usable: boolean
  /** Why it would be stepped over. */
  reason?: string
}
/** The models that one automatic job is tried on. */
export interface RoleModels {
  /** A setting, or the role of a run (`runRole`). */
  role: string
  /**
   * Where they come from: the setting; what is connected, the cheapest first; or what a message without a model runs
   * on. `none`: nothing that is connected fits.
   */
  from: 'list' | 'auto' | 'composer' | 'none'
  configured: ModelKey[]
  /** In the order in which they are tried; empty for `composer`. */
  resolved: ModelRung[]
}
/** The same for the group that starts the job. */
export interface ModelLadder extends RoleModels {
  /** The effort that goes with it. */
  effort?: string
}

export interface ModelCalls {
  /**
   * List which models each automatic job would run on now, in the order in which they are tried. Asks no model.
   */
  'GET /settings/models'(): { roles: RoleModels[] }

  /**
   * The models of one automatic job; `models` stand in place of the configured ones.
   *
   * - 422: no such role
   */
  'models.ladder'(input: { role: Text; models?: string[] }): ModelLadder
}
