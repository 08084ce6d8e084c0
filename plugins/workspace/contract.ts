import typia from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { AppCalls } from './apps/contract.js'
import type { ArchiveCalls } from './archives/contract.js'
import type { ClassifyCalls } from './classify/contract.js'
import type { DerivedCalls } from './derived/contract.js'
import type { FileCalls } from './files/contract.js'
import type { ProjectCalls } from './projects/contract.js'
import type { RepositoryCalls } from './repositories/contract.js'
import type { SearchCalls } from './search/contract.js'
import type { TransferCalls } from './transfer/contract.js'
import type { TrashCalls } from './trash/contract.js'
import type { TreeCalls } from './tree/contract.js'
import type { UploadCalls } from './upload/contract.js'
import type { ChangeCalls } from './watch/contract.js'

export type * from './apps/contract.js'
export type * from './archives/contract.js'
export type * from './classify/contract.js'
export type * from './derived/contract.js'
export type * from './files/contract.js'
export type * from './projects/contract.js'
export type * from './repositories/contract.js'
export type * from './search/contract.js'
export type * from './transfer/contract.js'
export type * from './trash/contract.js'
export type * from './tree/contract.js'
export type * from './upload/contract.js'
export type * from './watch/contract.js'

/** The folder with all code: its tree, its files, and their changes. */
export interface WorkspaceCalls
  extends
    AppCalls,
    ArchiveCalls,
    ChangeCalls,
    ClassifyCalls,
    DerivedCalls,
    FileCalls,
    ProjectCalls,
    RepositoryCalls,
    SearchCalls,
    TransferCalls,
    TrashCalls,
    TreeCalls,
    UploadCalls {}

export const workspaceContract: Contract<WorkspaceCalls> = {
  schema: () => typia.json.application<WorkspaceCalls>(),
  request: typia.misc.createValidatePrune<Requests<WorkspaceCalls>>(),
  reply: () => typia.createValidate<Replies<WorkspaceCalls>>(),
}
