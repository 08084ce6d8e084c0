import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../../sdk/contract.js'

/** A file of a form. */
export interface SentFile {
  path: string
  name: string
  type: string
  bytes: number
}

/** The input of a call, and the content of the file during the call. */
export interface Taken {
  given: string
  held?: string
}

/** Calls that take other bodies than JSON. */
export interface Forms {
  /** Take a text. */
  'POST /forms/text'(input: { text: string & tags.MaxLength<100> }): Taken
  /** Take the fields of a form. */
  'POST /forms/fields'(input: { name: string; age?: number; tags?: string[] }): Taken
  /** Take a file. */
  'POST /forms/file'(input: { note?: string; file: SentFile }): Taken
}

export const forms: Contract<Forms> = {
  schema: () => typia.json.application<Forms>(),
  request: typia.misc.createValidatePrune<Requests<Forms>>(),
  reply: () => typia.createValidate<Replies<Forms>>(),
}
