import { createHmac } from 'node:crypto'
import { refuse } from '../../refusal.js'
import { bytesGiven } from './bytes.js'
import { deny } from './denied.js'
import type { ManifestEntries } from './entries.js'
import type { HostOperations, OperationInput, OperationOutput } from './protocol.js'

/** What a test needs of a setting that a manifest declares. */
export interface TestedSetting {
  readonly key: string
  readonly default?: string | number | boolean
  readonly secret?: boolean
}

/** What stands in for the stores of settings and secrets. */
export interface SecretFakes {
  /** Values of settings; the backend gets those of secret ones as references. */
  readonly settings?: { readonly [key: string]: string | number | boolean }
  /** The values of secrets. */
  readonly secrets?: { readonly [name: string]: string }
}

type Names = 'settings.get' | `secrets.${'ref' | 'has' | 'hmac' | 'value'}`
type Handlers = { [O in Names]: (input: OperationInput<HostOperations, O>) => OperationOutput<HostOperations, O> }

/** The operations on settings and secrets, with the values of the test. */
export const testedSecrets = (
  id: string,
  declared: readonly TestedSetting[],
  entries: Pick<ManifestEntries, 'secret'>,
  { settings = {}, secrets = {} }: SecretFakes,
): Handlers => {
  const nameOf = (key: string) => `ext/${id}/${key}`
  const own = new Map(declared.flatMap(({ key, secret }) => (secret ? [[nameOf(key), key] as const] : [])))
  const allowed = (name: string): string =>
    own.has(name) || entries.secret(name) !== undefined ? name : deny(`secret:${name}`)
  const find = (name: string): string | undefined => {
    const key = own.get(name)
    const value = key === undefined ? secrets[name] : settings[key]
    return value === undefined ? undefined : String(value)
  }
  const valueOf = (name: string): string => find(name) ?? refuse('not-found', `no secret named ${name} is stored`)
  return {
    'settings.get': () => {
      const defaults = declared.flatMap(({ key, default: value }) => (value === undefined ? [] : [[key, value]]))
      const references = [...own].flatMap(([name, key]) =>
        settings[key] === undefined ? [] : [[key, `{{secret:${name}}}`]],
      )
      return { settings: { ...Object.fromEntries(defaults), ...settings, ...Object.fromEntries(references) } }
    },
    'secrets.ref': ({ name }) => ({ reference: `{{secret:${allowed(name)}}}` }),
    'secrets.has': ({ name }) => ({ has: find(allowed(name)) !== undefined }),
    'secrets.hmac': ({ name, algorithm, data }) => ({
      bytes: createHmac(algorithm, valueOf(allowed(name)))
        .update(bytesGiven('data', data))
        .digest(),
    }),
    'secrets.value': ({ key }) => {
      if (!own.has(nameOf(key))) refuse('not-found', `the manifest declares no secret setting ${key}`)
      return { value: valueOf(nameOf(key)) }
    },
  }
}
