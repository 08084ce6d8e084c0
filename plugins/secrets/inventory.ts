import type { HeldCredential } from '../accounts/contract.js'
import type { CapabilityRecord } from '../capabilities/contract.js'
import type { CiState, RequiredSecret, SecretEntry, SecretUse } from './contract.js'
import type { KnownSecret } from './open-store.js'

/** What an inventory is put together from. */
export interface InventoryParts {
  readonly known: readonly KnownSecret[]
  readonly connected: readonly CapabilityRecord[]
  readonly required: readonly RequiredSecret[]
  readonly uses: ReadonlyMap<string, SecretUse>
  /** Where values lie, in words. */
  readonly place: string
  /** Of the keys that CI services were given. */
  readonly ci: ReadonlyMap<string, CiState>
}

/** Every credential that is held or asked for, sorted by name within each kind. */
export const inventory = ({ known, connected, required, uses, place, ci }: InventoryParts): SecretEntry[] => {
  const requiredBy = (key: string) =>
    required.filter(each => each.key === key).map(({ resourceId, type }) => ({ resourceId, type }))
  const lastUse = (...names: string[]): Pick<SecretEntry, 'lastUse'> => {
    const last = names
      .flatMap(name => uses.get(name) ?? [])
      .sort((one, other) => one.at - other.at)
      .at(-1)
    return last ? { lastUse: { at: last.at, lane: last.lane, ...(last.detail && { detail: last.detail }) } } : {}
  }
  const stored = known.flatMap(({ name, kind, hosts, personas }): SecretEntry[] =>
    kind === 'field'
      ? []
      : [
          {
            key: name,
            kind,
            status: 'set',
            requiredBy: requiredBy(name),
            storedAt: place,
            revealable: true,
            ...(hosts && { hosts: [...hosts] }),
            ...(personas && { personas: [...personas] }),
            ...(ci.has(name) && { ci: ci.get(name)! }),
            ...lastUse(name),
          },
        ],
  )
  const there = new Set(stored.map(({ key }) => key))
  const missing = [...new Set(required.map(({ key }) => key))].filter(key => !there.has(key))
  return [
    ...[
      ...stored,
      ...missing.map((key): SecretEntry => ({
        key,
        kind: 'env',
        status: 'missing',
        requiredBy: requiredBy(key),
        storedAt: place,
        revealable: false,
      })),
    ].sort((one, other) => (one.key < other.key ? -1 : 1)),
    ...connected
      .filter(({ secrets }) => secrets.length > 0)
      .map(({ id, label, secrets }): SecretEntry => ({
        key: id,
        kind: 'capability',
        label,
        status: 'connected',
        requiredBy: [{ resourceId: id, type: 'capability' }],
        storedAt: place,
        revealable: true,
        ...lastUse(...secrets.map(field => `${id}/${field}`)),
      })),
  ]
}

/** The credential of an account of a provider, which nobody reveals. */
export const heldByProvider = ({ provider, account, label }: HeldCredential): SecretEntry => ({
  key: `${provider}/${account}`,
  kind: 'provider',
  label,
  status: 'connected',
  requiredBy: [{ resourceId: provider, type: 'provider' }],
  storedAt: 'encrypted under the key of this machine, with the accounts of providers',
  revealable: false,
})
