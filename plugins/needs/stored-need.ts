import type { Need, NeedField, NeedInput } from './contract.js'

/** A need as it is stored. */
export interface StoredNeed extends Omit<Need, 'allowed'> {
  fields: NeedField[]
  blocking: boolean
  /** The agent gets the answer with its next turn, and none is started: the person who settled it asked for that. */
  quiet?: true
  /** Somebody who may not land raised or settled it: what the agent reads of it counts as their words. */
  byOthers?: true
  /** The id of the message that tells the agent; stored before it is sent. */
  message?: string
  /** The run that was told in its notes. */
  toldIn?: string
  /** Keyed hashes of the secrets that were given, by field: the same ones given again are a repetition. */
  marks?: { [key: string]: string }
}

const ANSWER: NeedField = { key: 'answer', label: 'Answer', type: 'text', required: true }
const FILE: NeedField = { key: 'file', label: 'File', type: 'file', required: true }

/** The fields of a need; a decision, an information and a file have one by themselves. */
export const askedFields = ({ kind, fields }: Pick<NeedInput, 'kind' | 'fields'>): NeedField[] => {
  if (fields?.length) return fields
  if (kind === 'decision' || kind === 'information') return [ANSWER]
  return kind === 'file' ? [FILE] : []
}

/** Whether a need takes a secret. */
export const takesSecret = ({ fields }: Pick<StoredNeed, 'fields'>): boolean =>
  fields.some(({ type }) => type === 'secret')

/** The names under which everything that a need asks for is stored; undefined: it asks for more than secrets. */
export const secretKeysOf = ({ fields }: Pick<StoredNeed, 'fields'>): string[] | undefined => {
  const keys = fields.flatMap(({ type, secretKey }) =>
    type === 'secret' && secretKey !== undefined ? [secretKey] : [],
  )
  return keys.length > 0 && keys.length === fields.length ? keys : undefined
}

export const isOpen = ({ status }: Pick<Need, 'status'>): boolean => status === 'open'

/** Whether the agent was told of a settled need, or has nobody to tell. */
export const isTold = ({ continued, toldIn, status }: StoredNeed): boolean =>
  continued !== undefined || toldIn !== undefined || status === 'withdrawn'
