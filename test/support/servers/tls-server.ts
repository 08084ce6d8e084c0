import { once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { Test } from 'tap'
import { ConversationAuthority } from '../../../plugins/agent/secrets/conversation-authority.js'

/** A request as the server received it. */
export interface Recorded {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** The body as it came. */
  readonly bytes: Buffer
}

/** Writes the answer to a request after its body was read. */
export type Answering = (asked: Recorded, answer: ServerResponse) => void

/** Records the requests of a server and answers them. */
export const recording =
  (requests: Recorded[], answering: Answering) =>
  async (asked: IncomingMessage, answer: ServerResponse): Promise<void> => {
    const pieces: Buffer[] = []
    for await (const piece of asked) pieces.push(piece as Buffer)
    const { method = '', url = '', headers } = asked
    const bytes = Buffer.concat(pieces)
    const recorded = { method, url, headers, body: bytes.toString(), bytes }
    requests.push(recorded)
    answering(recorded, answer)
  }

let roots: Promise<ConversationAuthority> | undefined

/** A certificate authority that this process trusts like the machine's own. */
const trustedRoots = (): Promise<ConversationAuthority> =>
  (roots ??= ConversationAuthority.make().then(authority => {
    setDefaultCACertificates([...getCACertificates('default'), authority.certificate])
    return authority
  }))

/** A TLS server on this machine that has a certificate for every requested host name. */
export const tlsServer = async (t: Test, answering: Answering, host = '127.0.0.1') => {
  const requests: Recorded[] = []
  const authority = await trustedRoots()
  const server = createServer(
    {
      SNICallback: (name, done) =>
        void authority.contextOf(name).then(
          context => done(null, context),
          (error: unknown) => done(error as Error),
        ),
    },
    (asked, answer) => void recording(requests, answering)(asked, answer),
  )
  // Without a host name the client connected to an address.
  server.setSecureContext(await authority.identityOf(host))
  server.listen(0, host)
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { requests, port: (server.address() as AddressInfo).port }
}
