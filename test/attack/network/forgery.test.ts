import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { askOutside } from '../../../sdk/node/network/outbound.js'
import { answersOf, walled } from '../support.js'
import { runTurn } from '../../support/turns.js'
import { USERS } from '../users.js'
import { spelled } from './host-spellings.js'
import { daemonOf, HERE } from './user-daemon.js'

const CANARY = 'canary-of-the-machine'
const KEYS = {
  p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
  auth: 'BTBZMqHH6r4Tts7J_aSIgg',
}

const serving = async (t: Test, answer: (asked: IncomingMessage) => { status: number; location?: string }) => {
  const seen: IncomingMessage[] = []
  const server = createServer((asked, reply) => {
    seen.push(asked)
    const { status, location } = answer(asked)
    reply.writeHead(status, location === undefined ? {} : { location })
    reply.end(CANARY)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => (server.closeAllConnections(), server.close()))
  return { seen, port: (server.address() as AddressInfo).port }
}

for (const [user, uid] of USERS)
  t.test(`${user}: no address that the daemon asks for somebody leads to itself or to metadata`, walled(), async t => {
    const daemon = await daemonOf(t, uid, { 'README.md': '# work\n' })
    const { client, url, session } = daemon
    const own = new URL(url).port
    const canary = await serving(t, () => ({ status: 200 }))
    const post = async (path: string, body: object) => {
      const answer = await fetch(url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${session}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      return { status: answer.status, text: await answer.text() }
    }
    const server = (baseUrl: string) => ({ id: 'server', kind: 'server', protocol: 'openai', baseUrl })
    const tools = (address: string) => ({ id: 'tools', kind: 'mcp', config: { url: address } })
    // 0127 is octal, and an address of somebody else.
    const hosts = [
      ...spelled('127.0.0.1').filter(host => !host.includes('0127')),
      'localhost',
      'LOCALHOST.',
      '0.0.0.0',
      '[::1]',
      '[::]',
      ...(HERE ? [HERE] : []),
    ]
    const targets = [
      ...hosts.map(host => `${host}:${own}`),
      ...spelled('169.254.169.254').map(host => `${host}:80`),
      ...['[fd00:ec2::254]:80', '100.100.100.200:80', '169.254.170.2:80'],
    ]

    await t.test('as a push service, a model server or a tool server, in any spelling', async t => {
      for (const target of targets) {
        const push = await post('/push/subscribe', { kind: 'webpush', endpoint: `https://${target}/`, keys: KEYS })
        t.ok([400, 422].includes(push.status), `push ${target}: ${push.status} ${push.text.slice(0, 200)}`)
        const model = await post('/endpoints', server(`http://${target}/v1`))
        t.ok([400, 422].includes(model.status), `model ${target}: ${model.status} ${model.text.slice(0, 200)}`)
        const tool = await post('/capabilities', tools(`http://${target}/mcp`))
        t.match(tool.text, /sandbox itself|told its own secrets|expected/, `tools ${target}`)
        t.notMatch(tool.text, /"kind":"result"|401|403/, `tools ${target}`)
      }
    })

    await t.test('as what a model server or a tool server redirects to', async t => {
      const aims = [`http://127.0.0.1:${canary.port}/`, `${url}/health`, 'http://169.254.169.254/latest/']
      for (const location of aims)
        for (const status of [301, 302, 303, 307, 308]) {
          const leads = await serving(t, () => ({ status, location }))
          const at = `http://127.0.0.1:${leads.port}`
          await post('/capabilities', tools(`${at}/mcp`))
          await post('/endpoints', server(`${at}/v1`))
          await post('/endpoints/server/test', { model: 'm' })
          const turn = { conversationId: `r${status}`, agent: 'endpoint/server', model: 'm', prompt: 'hello' }
          await post('/agent', turn)
          t.ok(leads.seen.length > 0, `${status} to ${location}: the server itself is asked`)
          await client.call('DELETE /endpoints/{id}', { id: 'server' }).catch(() => {})
        }
      t.strictSame(
        canary.seen.map(({ method, url }) => `${method} ${url}`),
        [],
      )
    })

    await t.test('as an address that a turn fetches', async t => {
      const addresses = hosts.flatMap(host => [`http://${host}:${own}/health`, `http://${host}:${canary.port}/`])
      const frames = await runTurn(client, 'c', addresses.map(each => `fetch ${each}`).join('\n'), { isolated: true })
      const texts = answersOf(frames).map(({ text }) => text)
      t.equal(texts.length, addresses.length)
      t.notMatch(texts.join('\n'), new RegExp(`${CANARY}|sandbox-daemon|"ok":`))
      t.strictSame(canary.seen, [])
    })
  })

t.test('a header that is meant for one server does not follow a redirect to another', async t => {
  const other = await serving(t, () => ({ status: 200 }))
  const first = await serving(t, () => ({ status: 302, location: `http://127.0.0.1:${other.port}/` }))
  const secrets = {
    authorization: 'Bearer s',
    cookie: 's',
    'private-token': 's',
    'job-token': 's',
    'x-api-key': 's',
    'x-amz-security-token': 's',
    apikey: 's',
  }
  await askOutside({
    url: `http://127.0.0.1:${first.port}/`,
    headers: { ...secrets, accept: 'text/plain' },
    reach: { near: true, listeners: [] },
    timeoutMs: 5_000,
    maxBytes: 1_000,
  })
  const [asked] = other.seen
  t.equal(asked?.headers.accept, 'text/plain')
  t.strictSame(
    Object.keys(secrets).filter(name => asked?.headers[name] !== undefined),
    [],
  )
})
