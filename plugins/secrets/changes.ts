import { Refusal, refuse } from '../../sdk/index.js'
import { VAULTED } from '../../sdk/vaulted.js'
import type { Input } from '../../sdk/contract.js'
import type { SecretsCalls, SkippedSecret } from './contract.js'
import { EnvTextError, readEnvText } from './env/env-text.js'
import type { ReplacedSecret, StoredSecret, VaultContent } from './vault/vault.js'

const MOST_KEYS = 1000
const MOST_BYTES = 64 * 1024
const LATE_MS = 24 * 60 * 60_000
const KEY = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/

/** Refuses what cannot be a value: it would not pass through an environment as it is. */
export const checkValue = (value: string, path = 'value'): void => {
  const wrong = (expected: string) =>
    refuse('invalid', `${path}: expected ${expected}`, { errors: [{ path, expected }] })
  if (value === '') wrong('a value, found an empty one')
  if (value.includes('\0')) wrong('a value without NUL characters')
  if (!value.isWellFormed()) wrong('well-formed Unicode')
  const bytes = Buffer.byteLength(value)
  if (bytes > MOST_BYTES) refuse('too-large', `${path}: expected at most ${MOST_BYTES} bytes, found ${bytes}`)
}

/** The content with a value stored or replaced; what it replaces stays masked for a day. */
export const withSecret = (content: VaultContent, secret: StoredSecret, now: number): VaultContent => {
  const before = content.secrets.find(({ name }) => name === secret.name)
  const others = content.secrets.filter(each => each !== before)
  const plain = others.filter(({ kind }) => kind !== 'field').length
  if (!before && secret.kind !== 'field' && plain >= MOST_KEYS)
    refuse('conflict', `expected at most ${MOST_KEYS} keys, and so many are stored: remove one first`)
  const late: ReplacedSecret[] =
    before && before.value !== secret.value ? [{ name: before.name, value: before.value, until: now + LATE_MS }] : []
  return { secrets: [...others, secret], replaced: [...stillLate(content, now), ...late] }
}

/** The content without the values of some names. */
export const without = (content: VaultContent, gone: (name: string) => boolean, now: number): VaultContent =>
  content.secrets.some(({ name }) => gone(name)) || content.replaced.some(({ name }) => gone(name))
    ? {
        secrets: content.secrets.filter(({ name }) => !gone(name)),
        replaced: stillLate(content, now).filter(({ name }) => !gone(name)),
      }
    : content

/** The content with other names; a value that had a name already is replaced. */
export const renamed = ({ secrets, replaced }: VaultContent, to: (name: string) => string): VaultContent => {
  const taken = new Set(secrets.map(({ name }) => to(name)).filter((name, at) => name !== secrets[at]!.name))
  return {
    secrets: secrets
      .filter(({ name }) => to(name) !== name || !taken.has(name))
      .map(each => ({ ...each, name: to(each.name) })),
    replaced: replaced.map(each => ({ ...each, name: to(each.name) })),
  }
}

/** The replaced values that may still show. */
export const stillLate = ({ replaced }: VaultContent, now: number): ReplacedSecret[] =>
  // A clock that was set back keeps none for longer than a day.
  replaced.filter(({ until }) => until > now && until <= now + LATE_MS)

/** What `POST /secrets` makes of what is stored. */
export const set = (content: VaultContent, given: Input<SecretsCalls, 'POST /secrets'>, now: number): VaultContent => {
  const { key, hosts, personas } = given
  const value = given.value === VAULTED ? undefined : given.value
  const before = content.secrets.find(({ name }) => name === key)
  if (!before && value === undefined)
    refuse('not-found', `value: expected one, since no ${key} is stored whose binding could change`)
  const kept = hosts === undefined ? before?.hosts : hosts.map(host => host.toLowerCase())
  const whose = personas === undefined ? before?.personas : personas
  const secret: StoredSecret = {
    name: key,
    kind: value === undefined ? before!.kind : 'env',
    value: value ?? before!.value,
    at: value === undefined ? before!.at : now,
    ...(kept?.length && { hosts: [...new Set(kept)] }),
    ...(whose?.length && { personas: [...new Set(whose)] }),
  }
  return withSecret(content, secret, now)
}

/** What an import made of what is stored, by names. */
export interface Imported {
  readonly added: string[]
  readonly replaced: string[]
  readonly skipped: SkippedSecret[]
}

/** What a `.env` text makes of what is stored, and what it did. */
export const imported = (
  content: VaultContent,
  text: string,
  { replace = false, only }: { replace?: boolean; only?: readonly string[] },
  now: number,
): { content: VaultContent; did: Imported } => {
  const did: Imported = { added: [], replaced: [], skipped: [] }
  const stored = new Map(content.secrets.map(each => [each.name, each]))
  let next = content
  for (const [key, value] of new Map(parsed(text).map(({ name, value }) => [name, value]))) {
    const before = stored.get(key)
    const reason = !KEY.test(key)
      ? 'bad-name'
      : only && !only.includes(key)
        ? 'not-chosen'
        : value === ''
          ? 'empty'
          : before && !replace
            ? 'exists'
            : undefined
    if (reason) {
      did.skipped.push({ key: key.slice(0, 200), reason })
      continue
    }
    checkValue(value, key)
    next = withSecret(next, { ...before, name: key, kind: 'env', value, at: now }, now)
    did[before ? 'replaced' : 'added'].push(key)
  }
  return { content: next, did }
}

const parsed = (text: string) => {
  try {
    return readEnvText(text)
  } catch (error) {
    if (!(error instanceof EnvTextError)) throw error
    throw new Refusal('invalid', `${error.message}; nothing was stored`, {
      errors: [{ path: 'text', expected: error.message }],
      cause: error,
    })
  }
}
