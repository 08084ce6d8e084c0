import { createHash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { isIP } from 'node:net'
import { connect } from 'node:tls'
import { Refusal, refuse } from '../../../sdk/index.js'

const ASK_MS = 10_000

/**
 * The hash of the public key of a gateway whose certificate is the pinned one, as openconnect takes it: a gateway that
 * shows another certificate with another key meanwhile is refused by openconnect.
 */
export const pinnedKey = async (
  { server, port }: { readonly server: string; readonly port: number },
  pinned: string,
  signal: AbortSignal,
): Promise<string> => {
  // The certificate is compared below; nothing is sent.
  const socket = connect({
    host: server,
    port,
    rejectUnauthorized: false,
    ...(!isIP(server) && { servername: server }),
  })
  try {
    const late = AbortSignal.any([signal, AbortSignal.timeout(ASK_MS)])
    await once(socket, 'secureConnect', { signal: late })
    const certificate: X509Certificate =
      socket.getPeerX509Certificate() ?? refuse('dependency', 'it shows no certificate')
    const found = `sha256:${createHash('sha256').update(certificate.raw).digest('hex')}`
    if (found !== pinned) refuse('dependency', `expected the certificate ${pinned}, found ${found}`)
    return createHash('sha256')
      .update(certificate.publicKey.export({ type: 'spki', format: 'der' }))
      .digest('base64')
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof Refusal) throw error
    return refuse('dependency', `${server}:${port} does not answer: ${(error as Error).message}`, { cause: error })
  } finally {
    socket.destroy()
  }
}
