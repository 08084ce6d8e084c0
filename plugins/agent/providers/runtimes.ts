import { Refusal, type Host } from '../../../sdk/index.js'
import type { ProviderRuntime, RuntimeStates } from './contract.js'

type Link = Pick<Host, 'call' | 'serves'>

/** Whether each provider that turns can name could be used now; asks nothing of the network. */
export const runtimesOf = async (
  host: Link,
  builtIn: readonly string[],
  assertInstalled: (program: string) => Promise<void>,
): Promise<RuntimeStates> => {
  const checkedAt = Date.now()
  const of = (reason: string | undefined): ProviderRuntime => ({
    state: reason === undefined ? 'ready' : 'unavailable',
    ...(reason !== undefined && { detail: reason }),
    checkedAt,
  })
  const found: RuntimeStates = Object.fromEntries(builtIn.map(id => [id, of(undefined)]))
  if (await host.serves('endpoints.choices'))
    for (const { id, ready, reason } of (await host.call('endpoints.choices')).endpoints)
      found[`endpoint/${id}`] = of(ready ? undefined : (reason ?? 'the server cannot be used now'))
  if (await host.serves('accounts.standing'))
    for (const { provider, ready, detail } of (await host.call('accounts.standing')).providers)
      if (ready !== 'no-account')
        found[provider] = of(ready === 'yes' ? undefined : (detail ?? `its accounts: ${ready}`))
  if (await host.serves('capabilities.records'))
    for (const { id } of (await host.call('capabilities.records', { kind: 'agent' })).capabilities)
      found[`agent/${id}`] = of(await reasonOf(assertInstalled(id)))
  return found
}

const reasonOf = (work: Promise<void>): Promise<string | undefined> =>
  work.then(
    () => undefined,
    error => Refusal.from(error).message,
  )
