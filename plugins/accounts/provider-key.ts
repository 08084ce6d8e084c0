import { refuse } from '../../sdk/index.js'
import type { ProviderDefinition } from '../providers/contract.js'
import { headersFor, fitsHeader, providerWords, type AskProvider } from './provider-wire.js'
import type { GrantedAccount } from './sign-in/oauth.js'

/** What a key grants: it is tried with one request that costs nothing. */
export const triedKey = async (
  ask: AskProvider,
  definition: ProviderDefinition,
  given: string,
): Promise<GrantedAccount> => {
  const value = given.trim()
  if (!fitsHeader(value)) refuse('invalid', 'key: expected printable characters without blanks, found others')
  const { baseUrl, models, auth, label } = definition
  const credential = { kind: 'key', value } as const
  const answer = await ask({
    url: baseUrl + (auth.probe ?? models.list ?? '/models'),
    headers: headersFor(definition, credential),
  })
  if (answer.status < 200 || answer.status > 299)
    refuse('dependency', `${label} refused the key: ${providerWords(answer, [value])}`)
  return { credential }
}
