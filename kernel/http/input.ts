import type { IncomingMessage } from 'node:http'
import type { ContractSchema, Shape } from '../../sdk/contract.js'
import { CLOSED_KEYS, parseObject } from '../../sdk/node/files/json.js'
import { Refusal, refuse } from '../../sdk/refusal.js'

const SILENCE = 30_000

/** Reads a JSON object of at most `limit` bytes and 64 levels; an empty body is `{}`. */
export const readJsonBody = async (req: IncomingMessage, limit: number): Promise<object> => {
  const length = Number(req.headers['content-length'])
  if (length > limit) throw bodyTooLarge(limit)
  if (length === 0) return {}
  // A small body arrives with its head; Node hands it over as soon as this function has returned.
  await undefined
  const bytes = req.readableLength === length ? (req.read() as Buffer) : await receiveBytes(req, limit)
  if (bytes.length === 0) return {}
  const coding = req.headers['content-encoding'] ?? 'identity'
  if (coding.toLowerCase() !== 'identity')
    refuse('unsupported', `expected a body without content-encoding, found ${coding.slice(0, 40)}`)
  const type = (req.headers['content-type'] ?? '').split(';', 1)[0]!.trim().toLowerCase()
  if (type !== 'application/json')
    refuse('unsupported', `expected a body of type application/json, found ${type.slice(0, 80) || 'none'}`)
  return parseObject(bytes)
}

/** Receives all bytes of a body; refuses more than `limit` bytes, and closes the connection after 30 s without any. */
const receiveBytes = (req: IncomingMessage, limit: number): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const silent = setTimeout(() => req.destroy(), SILENCE)
    const fail = (refusal: Refusal) => {
      clearTimeout(silent)
      req.removeAllListeners('data').resume()
      reject(refusal)
    }
    if (req.destroyed) return fail(bodyIncomplete())
    const parts: Buffer[] = []
    let size = 0
    req.on('data', (part: Buffer) => {
      silent.refresh()
      size += part.length
      if (size > limit) fail(bodyTooLarge(limit))
      else parts.push(part)
    })
    req.once('end', () => {
      clearTimeout(silent)
      resolve(parts.length === 1 ? parts[0]! : Buffer.concat(parts))
    })
    for (const event of ['error', 'close']) req.once(event, () => req.complete || fail(bodyIncomplete()))
  })

/** The refusal of a body with too many bytes. */
export const bodyTooLarge = (limit: number): Refusal =>
  new Refusal('too-large', `the body is larger than the limit of ${limit} bytes`)

/** The refusal of a body whose connection closed before its end. */
export const bodyIncomplete = (): Refusal => new Refusal('invalid', 'the body ended before it was complete')

/** Reads a query into the types that the call declares; refuses a repeated key unless it is declared as a list. */
export const readQuery = (query: string, call: string, schema: ContractSchema): { [key: string]: unknown } =>
  readFields(named(new URLSearchParams(query)), 'query', call, schema)

const DIGITS = /^\d+$/

/** The parameters of a path; one of digits alone is a number where the call declares that. */
export const readParams = (
  params: { readonly [name: string]: string },
  call: string,
  schema: () => ContractSchema,
): { readonly [name: string]: unknown } => {
  const numbers = Object.entries(params).filter(([, value]) => DIGITS.test(value))
  if (numbers.length === 0) return params
  return { ...params, ...readFields(new Map(numbers.map(([name, value]) => [name, [value]])), 'query', call, schema()) }
}

/** Every name of a query or form with all its values. */
export const named = (given: URLSearchParams): Map<string, string[]> =>
  new Map([...given.keys()].map(key => [key, given.getAll(key)]))

/** Coerces named texts to the types their call declares; leaves other values alone. */
export const readFields = (
  fields: ReadonlyMap<string, readonly unknown[]>,
  from: 'query' | 'body',
  call: string,
  schema: ContractSchema,
): { [key: string]: unknown } => {
  const shape = inputShape(call, schema)
  const input: { [key: string]: unknown } = {}
  for (const [key, values] of fields) {
    if (CLOSED_KEYS.has(key)) refuse('invalid', `the key ${key} is not allowed in a ${from}`)
    const declared = resolved(shape?.properties?.[key], schema)
    if (declared?.type === 'array') input[key] = values.map(value => readText(resolved(declared.items, schema), value))
    else if (values.length > 1) refuse('invalid', `${key}: expected once in the ${from}, found ${values.length} times`)
    else input[key] = readText(declared, values[0])
  }
  return input
}

const inputShape = (call: string, schema: ContractSchema): Shape | undefined =>
  resolved(schema.functions.find(({ name }) => name === call)?.parameters[0]?.schema, schema)

const resolved = (shape: Shape | undefined, { components }: ContractSchema): Shape | undefined =>
  shape?.$ref ? components.schemas?.[shape.$ref.split('/').at(-1)!] : shape

const BOOLEANS: { readonly [text: string]: boolean } = { true: true, false: false, 1: true, 0: false }

/** Leaves text that does not match the type as it is; the validator reports it. */
const readText = (shape: Shape | undefined, text: unknown): unknown => {
  if (typeof text !== 'string') return text
  if (shape?.type === 'boolean') return BOOLEANS[text] ?? text
  if (shape?.type === 'number' || shape?.type === 'integer') return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text
  return text
}
