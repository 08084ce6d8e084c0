import { createHash } from 'node:crypto'
import type { Contract, ContractSchema } from '../sdk/contract.js'

/** A fingerprint of each call of a contract; changes with the types of the call. */
export const shapesOf = (contract: Pick<Contract, 'schema'>): { [call: string]: string } => {
  const schema = contract.schema()
  return Object.fromEntries(
    schema.functions.map(call => [call.name, hash(JSON.stringify(sorted(withRefs(call, schema))))]),
  )
}

/** Sorts keys and list members, since the compiler's order of a union depends on other files. */
const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, sorted(inner)]),
  )
}

/** A call's schema with all components that it refers to, in order of first use. */
const withRefs = (call: unknown, { components }: ContractSchema): unknown[] => {
  const met = new Map<string, unknown>()
  const visit = (value: unknown): void => {
    for (const [, name] of JSON.stringify(value).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      if (met.has(name!)) continue
      met.set(name!, components.schemas?.[name!])
      visit(met.get(name!) ?? {})
    }
  }
  visit(call)
  return [call, ...met]
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 12)
