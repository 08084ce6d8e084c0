import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import sodium from 'libsodium-wrappers'
import type { Test } from 'tap'
import { type Recorded, recording, tlsServer } from '../../support/servers/tls-server.js'

/** A CI service with the variables of one repository, in the three forms of services, with TLS unless `plain`. */
export const ciServer = async (t: Test, plain = false) => {
  await sodium.ready
  const pair = sodium.crypto_box_keypair()
  const variables = new Map<string, { value: string; at: number }>()
  const state = { refuse: '', only: '', variables, clock: 0 }
  const put = (name: string, value: string) => void variables.set(name, { value, at: state.clock++ })
  const opened = (sealed: string): string =>
    sodium.to_string(sodium.crypto_box_seal_open(Buffer.from(sealed, 'base64'), pair.publicKey, pair.privateKey))
  const answerOf = ({ method, url, headers, body }: Recorded): [status: number, value?: unknown] => {
    const [path = ''] = url.split('?')
    const name = decodeURIComponent(path.split('/').at(-1)!)
    const given = body ? (JSON.parse(body) as { [field: string]: string }) : {}
    const token = headers['private-token'] ?? headers.authorization?.split(' ')[1]
    if (token !== 'forge-token') return [401, { message: 'Bad credentials' }]
    if (state.refuse) return [403, { message: state.refuse }]
    if (method !== 'GET' && state.only && name !== state.only && given['key'] !== state.only)
      return [422, { message: `${given['data'] ?? given['value']} is not accepted` }]
    const rows = [...variables].map(([name, { at }]) => ({ name, updated_at: String(at) }))
    if (path.endsWith('/public-key'))
      return [200, { key_id: 'k1', key: Buffer.from(pair.publicKey).toString('base64') }]
    if (url.startsWith('/api/v3/repos/acme/shop/') && path.includes('/secrets')) {
      if (method === 'GET') return [200, { total_count: rows.length, secrets: rows }]
      put(name, opened(given['encrypted_value']!))
      return [201]
    }
    if (path.startsWith('/api/v1/repos/acme/shop/actions/secrets')) {
      if (method === 'GET') return [200, rows]
      put(name.toUpperCase(), given['data']!)
      return [204]
    }
    if (path.startsWith('/api/v4/projects/acme%2Fshop/variables')) {
      if (method === 'GET')
        return [200, [...variables].map(([key, { value }]) => ({ key, value, environment_scope: '*' }))]
      const key = given['key'] ?? name
      if (method === 'PUT' && !variables.has(key)) return [404, { message: '404 Variable Not Found' }]
      put(key, given['value']!)
      return [method === 'PUT' ? 200 : 201]
    }
    return [404, { message: 'Not Found' }]
  }
  const answering = (asked: Recorded, answer: ServerResponse) => {
    const [status, value] = answerOf(asked)
    answer.writeHead(status, { 'content-type': 'application/json' })
    answer.end(value === undefined ? undefined : JSON.stringify(value))
  }
  if (!plain) return { ...(await tlsServer(t, answering)), state, variables }
  const requests: Recorded[] = []
  const server = createServer((asked, answer) => void recording(requests, answering)(asked, answer))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { requests, port: (server.address() as AddressInfo).port, state, variables }
}
