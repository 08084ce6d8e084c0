import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { inRealFolder, plainText } from '../../sdk/node/files/real-folders.js'
import type { LoopDocument, OutputField, OutputSpec } from './contract.js'

const FOLDER = ['.sandbox', 'records', 'loops']
const DOCUMENT = 'document.json'
/** The memory of a loop whose rounds begin new sessions. */
export const MEMORY = 'progress.md'
const MOST_BYTES = 64 * 1024
const KEYS = new Set(['done', 'reason', 'evidence', 'data'])

/** The document of a round, or why there is none. */
export type RoundDocument = { readonly document: LoopDocument } | { readonly problem: string }

/** The path of a file of a loop, from the workspace. */
export const loopFile = (conversationId: string, name = DOCUMENT): string => [...FOLDER, conversationId, name].join('/')

/** The folders of loops in the workspace, which turns write in. */
export class LoopFiles {
  readonly #workspace: string

  constructor(workspace: string) {
    this.#workspace = workspace
  }

  /** Removes the document of the round before, so that only the next one counts; with `memory` the memory too. */
  async clear(conversationId: string, { memory = false } = {}): Promise<void> {
    const names = memory ? [DOCUMENT, MEMORY] : [DOCUMENT]
    await inRealFolder(this.#workspace, [...FOLDER, conversationId], {}, async at => {
      for (const name of names) await rm(join(at, name), { force: true, recursive: true })
    })
  }

  /** Removes the folder of a conversation. */
  async remove(conversationId: string): Promise<void> {
    await inRealFolder(this.#workspace, FOLDER, {}, at =>
      rm(join(at, conversationId), { force: true, recursive: true }),
    )
  }

  /** What a round wrote. */
  async read(conversationId: string, output: OutputSpec): Promise<RoundDocument> {
    const text = await inRealFolder(this.#workspace, [...FOLDER, conversationId], {}, at =>
      plainText(join(at, DOCUMENT), MOST_BYTES),
    )
    return text === undefined
      ? { problem: `expected the document ${DOCUMENT} of at most ${MOST_BYTES} bytes, found none` }
      : documentIn(text, output)
  }
}

/** The document in a text; refuses what it does not declare. */
export const documentIn = (text: string, output: OutputSpec): RoundDocument => {
  const wrong = (path: string, expected: string, found: unknown) => ({
    problem: `${path}: expected ${expected}, found ${shown(found)}`,
  })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { problem: `the document is no JSON: ${text.slice(0, 60)}` }
  }
  if (!isObject(value)) return wrong('the document', 'an object', value)
  const { done, reason, evidence, data } = value
  const unknown = Object.keys(value).find(key => !KEYS.has(key))
  if (unknown !== undefined) return wrong('the document', 'done, reason, evidence or data', unknown)
  if (typeof done !== 'boolean') return wrong('done', 'true or false', done)
  if (typeof reason !== 'string') return wrong('reason', 'a text', reason)
  if (evidence !== undefined && typeof evidence !== 'string') return wrong('evidence', 'a text', evidence)
  if (data !== undefined && !isObject(data)) return wrong('data', 'an object', data)
  const fields = output.kind === 'json' ? output.fields : []
  for (const { name, type, required } of fields) {
    const given = data && Object.hasOwn(data, name) ? data[name] : undefined
    if (given === undefined ? required : !isOf(given, type)) return wrong(`data.${name}`, NAMES[type], given)
  }
  return {
    document: { done, reason, ...(evidence !== undefined && { evidence }), ...(data !== undefined && { data }) },
  }
}

const NAMES: { readonly [type in OutputField['type']]: string } = {
  string: 'a text',
  number: 'a number',
  boolean: 'true or false',
  'string[]': 'a list of texts',
}

const isObject = (value: unknown): value is { [key: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isOf = (value: unknown, type: OutputField['type']): boolean =>
  type === 'string[]' ? Array.isArray(value) && value.every(each => typeof each === 'string') : typeof value === type

const shown = (value: unknown): string => (value === undefined ? 'nothing' : JSON.stringify(value).slice(0, 60))
