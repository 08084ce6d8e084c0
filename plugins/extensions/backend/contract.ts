import typia, { type tags } from 'typia'
import type { Stream } from '../../../sdk/contract.js'
import type {
  BackendOperations,
  HostOperations,
  LinkMessage,
  OperationInputs,
  OperationOutputs,
} from '../../../sdk/node/extension/protocol.js'
import type { Count, Role } from '../../../sdk/types.js'
import type { ConnectedTools, ToolAnswered, ToolProgress } from '../../capabilities/contract.js'

/** A request below `/x/{id}/`, as the kernel received it; the credential is already checked and taken away. */
export interface SubtreeRequest {
  method: string
  /** The decoded segments after `/x`. */
  segments: string[]
  /** The query as it was sent, without its question mark. */
  query: string
  headers: { [name: string]: string }
  /** Pieces of the body are read with `kernel.subtree.body`, by this number; left out: there is no body. */
  body?: Count
  /** Of a person and of a token by its scope; nobody below it may be served. */
  role: Role
}
/** The beginning of the answer. */
export interface SubtreeHead {
  kind: 'head'
  status: number & tags.Type<'uint32'>
  headers: { [name: string]: string }
}
/** A piece of the answer's body. */
export interface SubtreePiece {
  kind: 'piece'
  /** A `Uint8Array`, for which JSON has no type. */
  bytes: unknown
}

/** One call of a tool that an extension serves. */
export interface ExtensionToolAsked {
  conversationId: string
  run: string
  /** `extension:<id>` */
  server: string
  name: string
  input: { [field: string]: unknown }
}
/** How far a call has come, or its result. */
export type ExtensionToolEvent = ToolProgress | ToolAnswered

/** What the kernel and other groups ask of the running backends. */
export interface BackendServices {
  /** Answers one request below `/x/`. */
  'extensions.serve'(input: SubtreeRequest): Stream<SubtreeHead | SubtreePiece>
  /** Lists the tools that running extensions serve, for a turn. */
  'extensions.tools'(): ConnectedTools
  /** Calls such a tool; the last event is its result. */
  'extensions.tool'(input: ExtensionToolAsked): Stream<ExtensionToolEvent>
}

/** Checks a message that came through the pipe of an extension. */
export const readMessage = typia.createValidate<LinkMessage>()

/** Checks what a backend asks. */
export const readOperation = typia.misc.createValidatePrune<OperationInputs<HostOperations>>()

/** Checks what a backend answers. */
export const readOutput = typia.misc.createValidatePrune<OperationOutputs<BackendOperations>>()
