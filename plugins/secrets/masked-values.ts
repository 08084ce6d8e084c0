import type { MaskedValue } from './contract.js'
import type { StoredSecret } from './vault/vault.js'

/** A variable or header on a line of its own: what stands behind its name. */
const NAMED = /^\s*[A-Za-z_][\w-]*\s*[=:]\s*(.*?)\s*$/
/** A word before a credential that says what it is. */
const SCHEME = /^(?:bearer|basic|token|apikey)\s+/i

/** What a value shows as: a field with variables or headers also as the value of each, which travels alone. */
export const maskedValues = ({ name, value, kind }: Pick<StoredSecret, 'name' | 'value' | 'kind'>): MaskedValue[] => {
  if (kind !== 'field') return [{ name, value }]
  const parts = value.split(/\r?\n/).flatMap(line => {
    const part = NAMED.exec(line)?.[1] ?? ''
    return [part, part.replace(SCHEME, '')]
  })
  return [...new Set([value, ...parts])].filter(Boolean).map(text => ({ name, value: text }))
}
