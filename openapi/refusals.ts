import type { oas31 } from 'openapi3-ts'
import { STATUS } from '../sdk/refusal.js'
import type { Reason } from '../sdk/refusal.js'
import { pascal, refTo } from './schemas.js'
import type { Schemas } from './schemas.js'

/** The schemas of error bodies. */
export const refusalSchemas: Schemas = {
  Refusal: {
    type: 'object',
    properties: {
      message: { type: 'string', description: 'What was expected, what was found and what to do, for a person.' },
      reason: {
        type: 'string',
        enum: Object.keys(STATUS),
        description: 'Why, for a program; each reason has one status.',
      },
      errors: { type: 'array', items: refTo('FieldError'), description: 'The fields that did not fit.' },
    },
    required: ['message', 'reason'],
    additionalProperties: true,
    description: 'The body of every failure. A call may add fields, where its description says so.',
  },
  FieldError: {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'Where, such as `attachments[0]`.' },
      expected: { type: 'string' },
      value: { type: 'string', description: 'What was found, where that may be shown.' },
    },
    required: ['path', 'expected'],
    description: 'One field that did not fit.',
  },
}

const TEXT: { readonly [reason in Reason]: string } = {
  invalid: 'Malformed input; `errors` names each field.',
  unauthenticated: 'No credential, or one that is not valid.',
  forbidden: 'Role, scope, host or origin does not reach this call; the message names what would.',
  'not-found': 'No such thing, or none the caller may know of.',
  conflict: 'Refused in the present state.',
  'too-large': 'The body is too large, or the disk is full.',
  unsupported: 'The body has a type this call does not take.',
  range: 'None of the bytes that were asked for exist.',
  unprocessable: 'Well-formed, but impossible here.',
  dependency: 'Something outside the sandbox refused, failed or did not answer.',
  'too-many': 'Too many requests, or a budget refuses.',
  failed: 'The sandbox failed; its log says why.',
  'missing-program': 'A program is missing; the message names it and how to install it.',
  unavailable: 'The start is not done, or what this call needs is not there.',
}

const RETRY: oas31.HeadersObject = {
  'retry-after': {
    description: 'Seconds after which asking again makes sense, where a time helps.',
    schema: { type: 'integer', minimum: 0 },
  },
}

const refusal = (description: string, headers?: oas31.HeadersObject): oas31.ResponseObject => ({
  description,
  ...(headers && { headers }),
  content: { 'application/json': { schema: refTo('Refusal') } },
})

/** The error responses, by component name. */
export const refusals: { readonly [name: string]: oas31.ResponseObject } = {
  ...Object.fromEntries(
    Object.entries(TEXT).map(([reason, text]) => [
      pascal(reason),
      refusal(text, reason === 'too-many' || reason === 'unavailable' ? RETRY : undefined),
    ]),
  ),
  UpgradeRequired: refusal('Not asked for as a WebSocket.', {
    upgrade: { description: 'What it is to be asked for as.', schema: { type: 'string', const: 'websocket' } },
  }),
  Refused: refusal('Any other refusal; `reason` says which.', RETRY),
}

/** The traits of a call that determine its general refusals. */
export interface CallTraits {
  /** It needs a general credential, or checks its own proof: a code, a ticket. */
  readonly checked: boolean
  /** Its method changes state. */
  readonly changes: boolean
  /** Its path has a parameter. */
  readonly named: boolean
}

/** Refusals by status, each with its description. */
export interface Declared {
  readonly [status: string]: string
}

/**
 * The error responses of a call: the general ones, and those that its docstring declares, with its description.
 *
 * `default` covers refusals made before the call is known, such as a head that is too large.
 */
export const refusalsOf = ({ checked, changes, named }: CallTraits, declared: Declared): oas31.ResponsesObject => {
  const general: [Reason, boolean][] = [
    ['invalid', true],
    ['unauthenticated', true],
    ['forbidden', true],
    ['not-found', named],
    ['too-large', changes],
    ['unsupported', changes],
    ['too-many', checked],
    ['failed', true],
    ['unavailable', true],
  ]
  return Object.fromEntries([
    ...general.filter(([, can]) => can).map(([reason]) => [STATUS[reason], ref(pascal(reason))]),
    ...Object.entries(declared).map(([status, description]) => [
      status,
      { ...ref(pascal(REASONS.get(Number(status))!)), description },
    ]),
    ['default', ref('Refused')],
  ])
}

const REASONS = new Map(Object.entries(STATUS).map(([reason, status]) => [status, reason]))

/**
 * Parses the refusals of a docstring, in lines such as `- 404: no such card`; returns them and the text without them.
 */
export const declaredIn = (text = ''): { text: string; declared: Declared } => {
  const lines = [...text.matchAll(/^- (\d{3}): (.*(?:\n {2}.*)*)$/gm)]
  const unknown = lines.find(([, status]) => !REASONS.has(Number(status)))
  if (unknown)
    throw new Error(
      `no reason of a refusal has the status ${unknown[1]}: expected one of ${[...REASONS.keys()].join(', ')}`,
    )
  return {
    text: lines.reduce((left, [line]) => left.replace(line, ''), text).trim(),
    declared: Object.fromEntries(lines.map(([, status, words]) => [status, sentence(words!.replace(/\n {2}/g, ' '))])),
  }
}

const sentence = (words: string): string => `${words[0]!.toUpperCase()}${words.slice(1)}.`

const ref = (name: string): oas31.ReferenceObject => ({ $ref: `#/components/responses/${name}` })

/** The answer of a socket route to a plain HTTP request. */
export const UPGRADE_REQUIRED = ref('UpgradeRequired')
