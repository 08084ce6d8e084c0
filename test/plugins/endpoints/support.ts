import type { Test } from 'tap'
import type { ServerInput } from '../../../plugins/endpoints/contract.js'
import type { Api } from '../../../sdk/api.js'
import type { Input, Reply } from '../../../sdk/contract.js'
import { CapabilityStore } from '../../support/capability-store.js'
import { daemonWith, type SupportOptions } from '../../support/daemon.js'
import { People } from '../../support/people.js'

const AS = {
  caller: { kind: 'plugin', actor: 'sandbox:test', role: 'owner' },
  signal: new AbortController().signal,
  trusted: true,
} as const

/** A daemon with group endpoints, its capabilities in memory: those of `store` when given, none where `bare`. */
export const endpointsWorld = async (
  t: Test,
  {
    store = new CapabilityStore(),
    bare = false,
    ...options
  }: SupportOptions & { store?: CapabilityStore; bare?: boolean } = {},
) => {
  const people = new People()
  people.add('vic@example.org', 'viewer')
  people.add('cas@example.org', 'collaborator')
  people.add('mai@example.org', 'maintainer')
  const daemon = await daemonWith(t, ['endpoints'], {
    git: false,
    ...options,
    fakes: { ...(!bare && store.fakes), ...people.fakes, ...options.fakes },
  })
  people.admit(daemon)
  return {
    daemon,
    store,
    people,
    call: <C extends 'endpoints.target' | 'endpoints.choices' | 'endpoints.price'>(call: C, input: Input<Api, C>) =>
      daemon.kernel.calls.answer(call, input, AS) as Promise<Reply<Api, C>>,
    save: (given: { id: string; baseUrl: string } & Partial<ServerInput>) =>
      daemon.client.call('POST /endpoints', { kind: 'server', protocol: 'openai', ...given }),
  }
}
