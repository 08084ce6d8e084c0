import type { Api } from '../../sdk/api.js'
import type { Handlers } from '../../sdk/contract.js'
import { refuse } from '../../sdk/refusal.js'
import type { CapabilityRecord } from '../../plugins/capabilities/contract.js'

type StoreCalls = Pick<
  Handlers<Api>,
  'capabilities.records' | 'capabilities.put' | 'capabilities.drop' | 'secrets.get' | 'secrets.names'
>

/** Capabilities and their secrets in memory, in place of the groups that store them. */
export class CapabilityStore {
  readonly records = new Map<string, CapabilityRecord>()
  readonly values = new Map<string, string>()
  /** Whether the secret store is open. */
  open = true
  /** The number of writes. */
  puts = 0

  /** Fakes for the groups capabilities and secrets. */
  readonly fakes: StoreCalls = {
    'capabilities.records': ({ kind }) => ({
      capabilities: [...this.records.values()]
        .filter(record => kind === undefined || record.kind === kind)
        .map(record => structuredClone(record)),
    }),
    'capabilities.put': ({ id, kind, label, config, secrets = {} }) => {
      const before = this.records.get(id)
      if (before && before.kind !== kind) refuse('conflict', `${id} is a ${before.kind}`)
      this.puts++
      for (const [field, value] of Object.entries(secrets)) {
        if (value === '') this.values.delete(`${id}/${field}`)
        else this.values.set(`${id}/${field}`, value)
      }
      const held = [...this.values.keys()]
        .filter(name => name.startsWith(`${id}/`))
        .map(name => name.slice(id.length + 1))
      const record = { id, kind, label: label ?? before?.label ?? id, config, secrets: held }
      this.records.set(id, record)
      return structuredClone(record)
    },
    'capabilities.drop': ({ id }) => {
      this.records.delete(id)
      for (const name of this.values.keys()) if (name.startsWith(`${id}/`)) this.values.delete(name)
      return { ok: true }
    },
    'secrets.names': () => ({ names: [...this.values.keys()], open: this.open, made: true, bound: false }),
    'secrets.get': ({ name }) => {
      if (!this.open) refuse('unavailable', 'the secret store is locked')
      const value = this.values.get(name)
      return value === undefined ? {} : { value }
    },
  }
}
