import typia from 'typia'
import type { Contract, Replies, Requests, Stream } from '../../sdk/contract.js'
import type { BranchCalls } from './branches/contract.js'
import type { GitChangeCalls } from './changes/contract.js'
import type { CloneCalls } from './clones/contract.js'
import type { CommitCalls } from './commits/contract.js'
import type { GitFileCalls } from './files/contract.js'
import type { OperationCalls } from './operations/contract.js'
import type { PathServices } from './paths/contract.js'
import type { RemoteCalls } from './remotes/contract.js'
import type { GitSideCalls } from './sides/contract.js'
import type { StashCalls } from './stash/contract.js'

export type * from './branches/contract.js'
export type * from './changes/contract.js'
export type * from './clones/contract.js'
export type * from './commits/contract.js'
export type * from './files/contract.js'
export type * from './operations/contract.js'
export type * from './paths/contract.js'
export type * from './records.js'
export type * from './remotes/contract.js'
export type * from './sides/contract.js'
export type * from './stash/contract.js'

/** The calls for other groups. */
export interface GitServices {
  /**
   * Holds repositories while the stream is open, by their ids or one by the git dir that its worktrees share; its one
   * event says that they are held. Refused with 409 after 60 s.
   */
  'git.lock'(input: { repo?: string; repos?: string[]; common?: string; by: string }): Stream<{ held: true }>
}

/** The repositories of the workspace. */
export interface GitCalls
  extends
    BranchCalls,
    GitChangeCalls,
    CloneCalls,
    CommitCalls,
    GitFileCalls,
    GitServices,
    GitSideCalls,
    OperationCalls,
    PathServices,
    RemoteCalls,
    StashCalls {}

export const gitContract: Contract<GitCalls> = {
  schema: () => typia.json.application<GitCalls>(),
  request: typia.misc.createValidatePrune<Requests<GitCalls>>(),
  reply: () => typia.createValidate<Replies<GitCalls>>(),
}
