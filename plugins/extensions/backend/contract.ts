import typia, { type tags } from 'typia'
import type { Stream } from '../../../sdk/contract.js'
import type {
  BackendOperations,
  HostOperations,
  LinkMessage,
  OperationInputs,
  OperationOutputs,
  ServiceStep,
  PaymentRequest,
  ServiceTerms,
} from '../../../sdk/node/extension/protocol.js'
import type { Count, Ok, Role } from '../../../sdk/types.js'
import type { ConnectedTools, ToolAnswered, ToolProgress } from '../../capabilities/contract.js'

/** A request below `/x/{id}/`, as the kernel received it; the credential is already checked and removed. */
export interface SubtreeRequest {
  method: string
  /** The decoded segments after `/x`. */
  segments: string[]
  /** The query as it was sent, without its question mark. */
  query: string
  headers: { [name: string]: string }
  /** The number for reading the body with `kernel.subtree.body`; left out: there is no body. */
  body?: Count
  /** The role of a person, or of a token by its scope; lower roles must not be served. */
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
/** It offers one run of a service: answered with `extensions.answerOffer`. */
export interface ToolOffers {
  kind: 'offer'
  id: string
  publisher: string
  offer: ServiceTerms
}
/** It asks the turn to pay for a request: answered with `extensions.answerPayment`. */
export interface ToolPays {
  kind: 'pay'
  id: string
  /** Counts the payments of the call, from 1. */
  nth: Count
  payment: PaymentRequest
}
/** A step of a run that a person allowed. */
export interface ToolServes {
  kind: 'served'
  id: string
  event: ServiceStep
}
/** What a call tells, and last its result. */
export type ExtensionToolEvent = ToolProgress | ToolOffers | ToolPays | ToolServes | ToolAnswered

/** A type of files of which an extension derives a text. */
export interface DocumentType {
  /** The ending of their names. */
  ending: string
  extension: string
  document: string
  label: string
  /** Changes with the code of the extension. */
  revision: string
}
/** Asks an extension for the text of a file. */
export interface DocumentAsked {
  extension: string
  document: string
  name: string
  /** A path in the data folder. */
  file: string
}
/** The text that an extension derived of a file. */
export interface DocumentText {
  markdown: string
  title?: string
  notes: string[]
}
/** Why an extension derived no text. */
export interface DocumentFailure {
  failed: string
  /** The extension did not run, so another time it may. */
  passing: boolean
}

/** The calls of the kernel and other groups to the running backends. */
export interface BackendServices {
  /** Answers one request below `/x/`. */
  'extensions.serve'(input: SubtreeRequest): Stream<SubtreeHead | SubtreePiece>
  /** Lists the tools that running extensions serve, for a turn. */
  'extensions.tools'(): ConnectedTools
  /** Calls such a tool; the last event is its result. */
  'extensions.tool'(input: ExtensionToolAsked): Stream<ExtensionToolEvent>
  /** Answers an offer of a call that runs; one that is over is fine. */
  'extensions.answerOffer'(input: { id: string; approve: boolean }): Ok
  /** Says what came of a payment of a call that runs; one that is over is fine. */
  'extensions.answerPayment'(input: { id: string; ok: boolean; text: string }): Ok
  /** The types of files of which running extensions derive a text; of two for one ending the first. */
  'extensions.documentTypes'(): { types: DocumentType[] }
  /** Derives the text of a file in the data folder, by the running backend of an extension. */
  'extensions.document'(input: DocumentAsked): DocumentText | DocumentFailure
}

/** Checks a message from the pipe of an extension. */
export const readMessage = typia.createValidate<LinkMessage>()

/** Checks a request of a backend. */
export const readOperation = typia.misc.createValidatePrune<OperationInputs<HostOperations>>()

/** Checks an answer of a backend. */
export const readOutput = typia.misc.createValidatePrune<OperationOutputs<BackendOperations>>()
