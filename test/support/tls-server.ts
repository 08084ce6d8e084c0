import { once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { Test } from 'tap'
import { ConversationAuthority } from '../../plugins/agent/secrets/conversation-authority.js'

/** A request as a server got it. */
export interface Recorded {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Writes the answer to a request whose body was read. */
export type Answering = (asked: Recorded, answer: ServerResponse) => void

/** Records what a server is asked, and answers it. */
export const recording =
  (requests: Recorded[], answering: Answering) =>
  async (asked: IncomingMessage, answer: ServerResponse): Promise<void> => {
    const pieces: Buffer[] = []
    for await (const piece of asked) pieces.push(piece as Buffer)
    const { method = '', url = '', headers } = asked
    const recorded = { method, url, headers, body: Buffer.concat(pieces).toString() }
    requests.push(recorded)
    answering(recorded, answer)
  }

let roots: Promise<ConversationAuthority> | undefined

/** An authority that this process trusts, as if the machine did. */
const trustedRoots = (): Promise<ConversationAuthority> =>
  (roots ??= ConversationAuthority.make().then(authority => {
    setDefaultCACertificates([...getCACertificates('default'), authority.certificate])
    return authority
  }))

/** A server over TLS that stands for whatever host it is asked for, on an address of this machine. */
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
  // Who asks for an address names no host.
  server.setSecureContext(await authority.identityOf(host))
  server.listen(0, host)
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { requests, port: (server.address() as AddressInfo).port }
}
