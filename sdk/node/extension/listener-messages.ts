import { refuse } from '../../refusal.js'
import type { ListenerMessage } from './protocol.js'

/** What of a listener's declaration decides which messages it may dispatch. */
export interface DispatchedEvents {
  readonly provider: string
  readonly events: readonly { readonly type: string }[]
}

const MOST_BYTES = 256 * 1024

/** Refuses a message of another provider, of an undeclared type, or that is too large. */
export const assertOwnMessage = (
  { provider: own, events }: DispatchedEvents,
  { provider, type, ...rest }: ListenerMessage,
): void => {
  if (provider !== own) refuse('invalid', `provider: expected ${own}, found ${provider}`)
  const known = events.map(event => event.type)
  if (!known.includes(type)) refuse('invalid', `type: expected ${known.join(' or ')}, found ${type}`)
  const bytes = Buffer.byteLength(JSON.stringify(rest))
  if (bytes > MOST_BYTES) refuse('too-large', `the message has ${bytes} bytes: expected at most ${MOST_BYTES}`)
}
