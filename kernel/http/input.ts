import type { IncomingMessage } from 'node:http'
import type { ContractSchema, Shape } from '../../sdk/contract.js'
import { Refusal, refuse, type Reason } from '../../sdk/refusal.js'

const SILENCE = 30_000
const DEPTH = 64
const CLOSED_KEYS = new Set(['__proto__', 'constructor', 'prototype'])

/** The JSON object a body holds: at most `limit` bytes, 64 levels deep; no body is `{}`. */
export const readJson = async (req: IncomingMessage, limit: number): Promise<object> => {
  const bytes = await readBytes(req, limit)
  if (bytes.length === 0) return {}
  const type = (req.headers['content-type'] ?? '').split(';', 1)[0]!.trim().toLowerCase()
  if (type !== 'application/json') refuse('unsupported', `expected a body of type application/json, found ${type || 'none'}`)
  return parseObject(bytes)
}

/** All bytes of a body, refused as soon as they are more than `limit` or stay away for 30 s. */
export const readBytes = (req: IncomingMessage, limit: number): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const silent = setTimeout(() => req.destroy(), SILENCE)
    const fail = (reason: Reason, message: string) => {
      clearTimeout(silent)
      req.removeAllListeners('data').resume()
      reject(new Refusal(reason, message))
    }
    const tooLarge = () => fail('too-large', `the body is larger than the ${limit} bytes this call takes`)
    if (Number(req.headers['content-length']) > limit) return tooLarge()
    const parts: Buffer[] = []
    let size = 0
    req.on('data', (part: Buffer) => {
      silent.refresh()
      size += part.length
      if (size > limit) tooLarge()
      else parts.push(part)
    })
    req.once('end', () => {
      clearTimeout(silent)
      resolve(parts.length === 1 ? parts[0]! : Buffer.concat(parts))
    })
    for (const event of ['error', 'close']) req.once(event, () => req.complete || fail('invalid', 'the body ended before it was whole'))
  })

const utf8 = new TextDecoder('utf-8', { fatal: true })

const parseObject = (bytes: Buffer): object => {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    return refuse('invalid', 'the body is not UTF-8')
  }
  if (isDeep(text)) refuse('invalid', `the body is nested deeper than ${DEPTH} levels`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return refuse('invalid', `the body is not JSON: ${(error as Error).message.slice(0, 120)}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refuse('invalid', `expected a JSON object as body, found ${Array.isArray(value) ? 'a list' : value === null ? 'null' : `a ${typeof value}`}`)
  }
  if (/__proto__|constructor|prototype|\\u/.test(text)) refuseClosedKeys(value)
  return value
}

const isDeep = (text: string): boolean => {
  let depth = 0
  let quoted = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (quoted) {
      if (code === 0x5c) at++
      else if (code === 0x22) quoted = false
    } else if (code === 0x22) quoted = true
    else if (code === 0x7b || code === 0x5b) {
      if (++depth > DEPTH) return true
    } else if (code === 0x7d || code === 0x5d) depth--
  }
  return false
}

const refuseClosedKeys = (value: unknown): void => {
  if (typeof value !== 'object' || value === null) return
  for (const [key, inner] of Object.entries(value)) {
    if (CLOSED_KEYS.has(key)) refuse('invalid', `the key ${key} is not allowed in a body`)
    refuseClosedKeys(inner)
  }
}

/** The query of a request in the types its call declares; a key given twice is refused unless it is a list. */
export const readQuery = (query: string, call: string, schema: ContractSchema): { [key: string]: unknown } => {
  const shape = inputShape(call, schema)
  const given = new URLSearchParams(query)
  const input: { [key: string]: unknown } = {}
  for (const key of new Set(given.keys())) {
    if (CLOSED_KEYS.has(key)) refuse('invalid', `the key ${key} is not allowed in a query`)
    const declared = resolved(shape?.properties?.[key], schema)
    const texts = given.getAll(key)
    if (declared?.type === 'array') input[key] = texts.map(text => readText(resolved(declared.items, schema), text))
    else if (texts.length > 1) refuse('invalid', `${key}: expected once in the query, found ${texts.length} times`)
    else input[key] = readText(declared, texts[0]!)
  }
  return input
}

const inputShape = (call: string, schema: ContractSchema): Shape | undefined =>
  resolved(schema.functions.find(({ name }) => name === call)?.parameters[0]?.schema, schema)

const resolved = (shape: Shape | undefined, { components }: ContractSchema): Shape | undefined =>
  shape?.$ref ? components.schemas?.[shape.$ref.split('/').at(-1)!] : shape

const BOOLEANS: { readonly [text: string]: boolean } = { true: true, false: false, 1: true, 0: false }

/** What does not fit stays text, for the validator to name. */
const readText = (shape: Shape | undefined, text: string): unknown => {
  if (shape?.type === 'boolean') return BOOLEANS[text] ?? text
  if (shape?.type === 'number' || shape?.type === 'integer') return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text
  return text
}
