import type { tags } from 'typia'
import type { SecretKey } from '../vault/key.js'

/** A repository whose CI service gets values. */
export interface CiTarget {
  /** `root`, or its path in the workspace. */
  repo: string & tags.MinLength<1> & tags.MaxLength<4096>
  /** The connection whose credential is used; left out: the one for the host of the remote. */
  connection?: string & tags.MinLength<1> & tags.MaxLength<60>
  /** An environment of the service: its values reach the jobs of that environment alone. */
  environment?: string & tags.MinLength<1> & tags.MaxLength<200>
}
/** What became of one key in one repository. */
export interface CiResult {
  repo: string
  key: string
  /** `unchanged`: the service has this value already. */
  status: 'pushed' | 'unchanged' | 'failed'
  /** Why it failed. */
  detail?: string
}
/** A key that the service still has and the sandbox no longer. */
export interface StaleCiKey {
  repo: string
  key: string
}
/** Whether the CI services that got a key have the value that is stored. */
export interface CiState {
  synced: boolean
  pushedAt?: string
}

/** Values for CI services. */
export interface CiCalls {
  /**
   * Write values into the CI service of each repository as secret variables, with the credential of a connection.
   *
   * Without `keys` these are the keys that the repository's workflow files name: `secrets.NAME` of GitHub, Forgejo and
   * Gitea, and of `.gitlab-ci.yml` every variable that is stored here. One failing key does not stop the others. A
   * value bound to hosts goes to no other. `stale` lists keys that an earlier call wrote, that are still there, and
   * that are stored here no longer.
   *
   * - 404: no such repository
   * - 422: a remote that is no CI service this sandbox knows, or no repository can be read
   * - 424: there is no connection for its host, or the service refused everything
   * - 503: the store is locked
   */
  'POST /secrets/ci'(input: {
    targets: CiTarget[] & tags.MinItems<1> & tags.MaxItems<20>
    keys?: SecretKey[] & tags.MinItems<1> & tags.MaxItems<1000>
  }): { results: CiResult[]; stale: StaleCiKey[] }
}
