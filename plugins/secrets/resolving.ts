import { isSealed } from '../../sdk/node/access/sealed-secrets.js'
import type { CapabilityRecord } from '../capabilities/contract.js'
import { boundRefusal, isBound, placeholderFor } from './binding.js'
import type { BoundSecret, ResolvedText, SecretText, SecretUser } from './contract.js'
import { referencedNames, withReferences } from './references.js'
import { shellLine } from './env/shell-line.js'
import type { StoredSecret } from './vault/vault.js'

/** What a text becomes, and the names of the values that leave in it. */
export interface Resolution {
  readonly answer: ResolvedText
  readonly used: readonly string[]
}

/** What a user may refer to: plain keys that its persona may use, and the fields of the capabilities it has. */
export const usable = (
  secrets: readonly StoredSecret[],
  { persona, capabilities }: SecretUser,
  connected: readonly CapabilityRecord[],
): Map<string, StoredSecret> => {
  const fields = new Set(
    connected
      .filter(({ id }) => capabilities?.includes(id) ?? true)
      .flatMap(({ id, kind, secrets: names }) =>
        names.filter(field => !isSealed(kind, field)).map(field => `${id}/${field}`),
      ),
  )
  const may = ({ name, kind, personas }: StoredSecret): boolean =>
    kind === 'field'
      ? fields.has(name) && !name.startsWith('ext/')
      : personas === undefined || (persona !== undefined && personas.includes(persona))
  return new Map(secrets.filter(may).map(each => [each.name, each]))
}

/** Puts values into a text, or into the variables of a shell line. */
export const resolved = (
  { text, placeholders: seed }: SecretText,
  way: 'text' | 'shell',
  known: ReadonlyMap<string, StoredSecret>,
): Resolution => {
  const names = referencedNames(text)
  const unknown = names.filter(name => !known.has(name))
  if (unknown.length > 0) return { answer: { unknown, names: [...known.keys()].sort() }, used: [] }
  const bindings = names.map(name => known.get(name)!).filter(isBound)
  if (bindings.length > 0 && seed === undefined) return { answer: { refused: boundRefusal(bindings[0]!) }, used: [] }
  const bound = bindings.map(({ name, hosts }) => ({
    name,
    hosts: [...hosts!],
    placeholder: placeholderFor(name, seed!),
  }))
  const placeholderOf = new Map(bound.map(({ name, placeholder }) => [name, placeholder]))
  const valueOf = (name: string): string => placeholderOf.get(name) ?? known.get(name)!.value
  const used = names.filter(name => !placeholderOf.has(name))
  if (way === 'text') return { answer: { text: withReferences(text, valueOf), ...ofBound(bound) }, used }
  if (names.length === 0) return { answer: { text }, used: [] }
  const variables = new Map(names.map((name, at) => [name, `SANDBOX_SECRET_${at + 1}`]))
  const line = shellLine(text, name => variables.get(name)!)
  if (line.kind === 'refused')
    return {
      answer: { refused: `a reference to a secret cannot stand ${line.why}: write the line another way` },
      used: [],
    }
  const env = Object.fromEntries([...variables].map(([name, variable]) => [variable, valueOf(name)]))
  return { answer: { text: line.text, env, ...ofBound(bound) }, used }
}

const ofBound = (bound: BoundSecret[]): Pick<ResolvedText, 'bound'> => (bound.length > 0 ? { bound } : {})
