import { Refusal, type Host } from '../../../../sdk/index.js'
import type { ProviderDefinition } from '../../../providers/contract.js'
import { failTurn } from '../native/over.js'
import type { NativeTarget } from '../native/target.js'
import type { TranslatorAccess } from '../../../routed/contract.js'

type Link = Pick<Host, 'call' | 'serves' | 'log'>

/** For which run a routed provider is asked. */
export interface RoutedRun {
  readonly run: string
  readonly model: string
  readonly account?: string
  /** Left out: a single question. */
  readonly conversationId?: string
}

/** A bearer of the translator for a run; ends the turn where there is none. */
export const translatorAccess = async (
  host: Link,
  { id: provider, label }: Pick<ProviderDefinition, 'id' | 'label'>,
  asked: RoutedRun & { readonly protocol: 'chat' | 'messages' | 'responses'; readonly shielded: boolean },
): Promise<TranslatorAccess> => {
  if (!(await host.serves('translator.endpointFor')))
    return failTurn(`${label} cannot be used: it is reached through the translator, which is not here`)
  return host.call('translator.endpointFor', { provider, ...asked }).catch((error: unknown) => {
    if (!(error instanceof Refusal)) throw error
    return failTurn(`${label} cannot be used: ${error.message}`, 'provider-outage')
  })
}

/**
 * A routed provider as the sandbox's own loop asks it: in the protocol of messages, whatever the provider speaks. The
 * translator chooses the account and writes down what that refuses; `over` ends the bearer.
 */
export const routedTarget = async (
  host: Link,
  definition: ProviderDefinition,
  asked: RoutedRun,
): Promise<NativeTarget> => {
  const { id, label } = definition
  const { models, default: usual } = await host.call('definitions.catalogue', { provider: id })
  const model = asked.model || usual
  // The loop asks the privacy shield itself, and says in the turn what it masked.
  const access = await translatorAccess(host, definition, { ...asked, model, protocol: 'messages', shielded: true })
  const { baseUrl, bearer } = access
  return {
    ...{ id, label, protocol: 'anthropic', baseUrl, local: false, models, default: usual },
    apiBase: `${baseUrl}/v1`,
    headers: { 'anthropic-version': '2023-06-01', 'x-api-key': bearer },
    named: `${id}/`,
    ...(asked.account !== undefined && { account: asked.account }),
    over: () => {
      host
        .call('translator.release', { bearer })
        .catch(error => host.log.warn('ending a bearer of the translator failed', { error: String(error) }))
    },
  }
}
