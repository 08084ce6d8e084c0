import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { isIP } from 'node:net'
import { Refusal, refuse, type Host, ignored } from '../../../sdk/index.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { SENTENCES } from '../../../sdk/node/network/failure-words.js'
import { addressesOf } from '../../../sdk/node/network/outbound.js'
import type { DiskTarget } from '../contract.js'
import { diskServer } from '../entry.js'

/**
 * A checked address of a share's server; its name is resolved once. Refuses the addresses of this sandbox itself (422)
 * and names that nobody knows (424).
 */
export const shareAddress = async (
  host: Pick<Host, 'call'>,
  target: DiskTarget,
  signal: AbortSignal,
): Promise<string> => {
  const { listeners } = await host.call('kernel.listeners')
  const server = diskServer(target)
  try {
    const found = (await addressesOf(server, { near: true, listeners }, signal)).map(({ address }) => address)
    return found.find(address => isIP(address) === 4) ?? found[0]!
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof Refusal) refuse('unprocessable', `${error.message}: name another server`)
    return refuse('dependency', `${server.host} could not be found: ${failureWords(error)}`)
  }
}

/** Why a connection failed, as the end of a sentence. */
export const failureWords = (error: unknown): string => {
  const code = codeOf(error) ?? ''
  if (error instanceof Error && (error.name === 'TimeoutError' || error.name === 'AbortError'))
    return 'it does not answer'
  return SENTENCES[code] ?? (code || (error instanceof Error ? error.message : String(error)))
}

/** A connection, and how long it took to make; it is closed when it is left. */
export const connectTo = async (
  address: string,
  port: number,
  signal: AbortSignal,
): Promise<{ socket: Socket; latencyMs: number }> => {
  const began = performance.now()
  const socket = connect(port, address)
  const close = () => socket.destroy(signal.reason as Error)
  signal.addEventListener('abort', close, { once: true })
  socket.once('close', () => signal.removeEventListener('abort', close))
  try {
    await once(socket, 'connect', { signal })
  } catch (error) {
    socket.destroy()
    throw error
  }
  socket.on('error', ignored('its close follows'))
  return { socket, latencyMs: Math.round(performance.now() - began) }
}
