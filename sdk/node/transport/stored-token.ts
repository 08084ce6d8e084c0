import type { Host } from '../../host.js'
import { refuse } from '../../refusal.js'
import type { RemoteAddress } from './remote-address.js'

/** The value of a stored secret for a server; one that is bound to hosts goes only to these. */
export const storedToken = async (
  host: Pick<Host, 'call' | 'serves'>,
  address: RemoteAddress,
  secret: string | undefined,
  detail: string,
): Promise<string | undefined> => {
  if (secret === undefined) return undefined
  if (address.kind !== 'https')
    return refuse('invalid', `secret: expected only with an https address, found ${address.kind}`)
  const missing = `there is no stored secret ${secret} that can be read: set it with POST /secrets`
  if (!(await host.serves('secrets.atHost'))) return refuse('dependency', missing)
  const bound = await host.call('secrets.atHost', { name: secret, host: address.host, lane: 'code', detail })
  if (bound.value !== undefined) return bound.value
  const { text, refused } = await host.call('secrets.resolve', { text: `{{secret:${secret}}}`, lane: 'code', detail })
  return text ?? refuse('dependency', refused ?? missing)
}
