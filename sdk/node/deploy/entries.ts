import { refuse } from '../../refusal.js'
import { DEPLOY_KINDS, declaredKind, storeKeyOf, type InventoryKind } from './kinds.js'
import { JsonTextError, memberOf, readJsonText, valueOfNode, type JsonNode } from './json-text.js'

/** Options that are not secret. */
export interface DeployValues {
  [option: string]: string | number
}
/** Something one has. */
export interface BackendEntry {
  kind: 'backend'
  provider: string
  name: string
  values: DeployValues
}
/** A service one wants run. */
export interface ServiceEntry {
  kind: 'service'
  service: string
  name: string
  values: DeployValues
  on: string
  expose: string
}
/** An app of one's own. */
export interface AppEntry {
  kind: 'app'
  name: string
  values: DeployValues
  on: string
  expose: string
}
/** An entry of the deployment configuration. */
export type DeployEntry = BackendEntry | ServiceEntry | AppEntry

/** The file of the deployment configuration, in the repository `intent`. */
export const CONFIG_NAME = 'deploy.config.json'
/** The repository of the deployment configuration. */
export const INTENT = 'intent'

const ENTRY_NAME = /^[a-zA-Z_][a-zA-Z0-9_]{0,59}$/
/** Whether an entry may have a name. */
export const isEntryName = (name: string): boolean => ENTRY_NAME.test(name)
const MOST_ENTRIES = 1000
const MOST_VALUES = 50
const LONGEST = 4096
const LONGEST_NAME = 60

/** A list of the configuration file that cannot be used. */
const unreadable = (problem: string): never => refuse('unprocessable', `${INTENT}/${CONFIG_NAME}: ${problem}`)

/** Reads the file, and refuses what is not JSON with comments. */
export const readDeployConfig = (text: string): JsonNode => {
  try {
    const root = readJsonText(text)
    if (!root.members) unreadable(where(text, root, 'expected an object'))
    return root
  } catch (error) {
    if (error instanceof JsonTextError) return unreadable(error.message)
    throw error
  }
}

const where = (text: string, { start }: JsonNode, problem: string): string =>
  new JsonTextError(text, start, problem).message

/** The entries of the file, in its order; refuses a list that has something else, with line and column. */
export const entriesIn = (text: string): DeployEntry[] => {
  // An empty file is one that somebody is about to write.
  if (text.trim() === '') return []
  const list = memberOf(readDeployConfig(text), 'inventory')?.value
  if (!list) return []
  if (!list.items) return unreadable(where(text, list, 'expected inventory to be a list of entries'))
  if (list.items.length > MOST_ENTRIES)
    unreadable(where(text, list, `expected at most ${MOST_ENTRIES} entries, found ${list.items.length}`))
  const known = new Set<string>()
  return list.items.map(({ value }) => {
    const entry = entryIn(text, value)
    if (known.has(entry.name)) unreadable(where(text, value, `expected each name once, found ${entry.name} again`))
    known.add(entry.name)
    return entry
  })
}

const entryIn = (text: string, node: JsonNode): DeployEntry => {
  const wrong = (at: JsonNode, problem: string): never => unreadable(where(text, at, problem))
  if (!node.members) return wrong(node, 'expected an entry in braces')
  const named = (key: string, pattern?: RegExp): string => {
    const value = memberOf(node, key)?.value
    if (typeof value?.scalar !== 'string') return wrong(value ?? node, `expected the entry to have ${key}, a text`)
    if (pattern && !pattern.test(value.scalar))
      return wrong(value, `expected ${key} to be a name of letters, digits and _, at most 60`)
    if (value.scalar.length > LONGEST_NAME)
      return wrong(value, `expected ${key} to have at most ${LONGEST_NAME} characters`)
    return value.scalar
  }
  const kind = named('kind')
  const name = named('name', ENTRY_NAME)
  const options = memberOf(node, 'values')?.value
  if (options && !options.members) wrong(options, 'expected values in braces')
  if ((options?.members?.length ?? 0) > MOST_VALUES) wrong(options!, `expected at most ${MOST_VALUES} values`)
  for (const { key, value } of options?.members ?? []) {
    const { scalar } = value
    const fits = Number.isFinite(scalar) || (typeof scalar === 'string' && scalar.length <= LONGEST)
    if (!fits || key.length === 0 || key.length > 60)
      wrong(value, `expected a text of at most ${LONGEST} characters or a number`)
  }
  const values = options ? (valueOfNode(options) as DeployValues) : {}
  const place = () => ({ on: named('on'), expose: memberOf(node, 'expose') ? named('expose') : '' })
  if (kind === 'backend') return { kind, provider: named('provider'), name, values }
  if (kind === 'service') return { kind, service: named('service'), name, values, ...place() }
  if (kind === 'app') return { kind, name, values, ...place() }
  return wrong(memberOf(node, 'kind')!.value, 'expected kind to be one of backend, service, app')
}

const idOf = (entry: DeployEntry): string | undefined =>
  entry.kind === 'backend' ? entry.provider : entry.kind === 'service' ? entry.service : undefined

/** What an entry is declared as. */
export const kindOfEntry = (entry: DeployEntry): InventoryKind | undefined => declaredKind(entry.kind, idOf(entry))

/** The secret options of an entry, with the name of each in the secret store. */
export const secretsOf = (entry: DeployEntry): { option: string; key: string; required: boolean }[] =>
  (kindOfEntry(entry)?.options ?? [])
    .filter(({ secret }) => secret)
    .map(({ key, required }) => ({ option: key, key: storeKeyOf(entry.kind, key, entry.name), required }))

/** The entries that name another one in `on` or `expose`. */
export const usersOf = (entries: readonly DeployEntry[], name: string): string[] =>
  entries
    .filter(entry => entry.kind !== 'backend' && (entry.on === name || entry.expose === name))
    .map(entry => entry.name)

/** Refuses an inventory in which an entry cannot be what it says, by the name of the entry and the option. */
export const assertInventory = (entries: readonly DeployEntry[]): void => {
  const folded = new Map<string, string>()
  for (const entry of entries) {
    const other = folded.get(entry.name.toUpperCase())
    if (other !== undefined)
      wrong(
        entry,
        'name',
        `a name that differs from ${other} in more than upper and lower case, as names of secrets do`,
      )
    folded.set(entry.name.toUpperCase(), entry.name)
    assertOptions(entry)
    if (entry.kind === 'backend') continue
    const host = entries.find(({ name }) => name === entry.on)
    if (host?.kind !== 'backend' || host.provider !== 'host')
      wrong(entry, 'on', `the name of a declared host${found(entry.on)}`)
    if (entry.expose === '') continue
    const by = entries.find(({ name }) => name === entry.expose)
    if (!by || !kindOfEntry(by)?.exposes)
      wrong(entry, 'expose', `the name of a backend that exposes${found(entry.expose)}`)
    if (entry.expose !== entry.on) wrong(entry, 'expose', `nothing, or the host it runs on, ${entry.on}`)
  }
}

const found = (value: string): string => `, found ${JSON.stringify(value.slice(0, 60))}`

const wrong = ({ name }: DeployEntry, path: string, expected: string): never =>
  refuse('unprocessable', `${name}: ${path}: expected ${expected}`, { errors: [{ path, expected }] })

const assertOptions = (entry: DeployEntry): void => {
  const kind = kindOfEntry(entry)
  if (!kind) {
    const ids = DEPLOY_KINDS.flatMap(({ kind: of, id }) => (of === entry.kind && id !== undefined ? [id] : []))
    const field = entry.kind === 'backend' ? 'provider' : 'service'
    return wrong(entry, field, `one of ${ids.join(', ')}${found(idOf(entry) ?? '')}`)
  }
  const known = kind.options.filter(({ secret }) => !secret).map(({ key }) => key)
  for (const key of Object.keys(entry.values)) {
    const option = kind.options.find(each => each.key === key)
    if (option?.secret)
      wrong(entry, `values.${key}`, `none, for it is secret: store it as ${storeKeyOf(entry.kind, key, entry.name)}`)
    if (!option) wrong(entry, `values.${key}`, `only ${known.join(', ')}`)
  }
  for (const { key, secret, required, type, values = [], pattern } of kind.options) {
    const value = entry.values[key]
    if (secret) continue
    if (value === undefined || value === '') {
      if (required) wrong(entry, `values.${key}`, 'a value, found none')
      if (value === undefined) continue
      wrong(entry, `values.${key}`, 'a value or no such option, found an empty text')
    }
    if (typeof value !== (type === 'number' ? 'number' : 'string'))
      wrong(entry, `values.${key}`, `a ${type === 'number' ? 'number' : 'text'}`)
    if (type === 'enum' && !values.includes(String(value))) wrong(entry, `values.${key}`, `one of ${values.join(', ')}`)
    if (pattern !== undefined && !new RegExp(pattern).test(String(value)))
      wrong(entry, `values.${key}`, type === 'number' ? 'a port from 1 to 65535' : `a text like ${pattern}`)
  }
}
