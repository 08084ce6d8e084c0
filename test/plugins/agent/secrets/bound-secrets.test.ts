import { once } from 'node:events'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Frame } from '../../../../plugins/agent/contract.js'
import { LEAST_MASKED } from '../../../../sdk/node/access/mask-forms.js'
import { walled } from '../../../attack/support.js'
import { daemonWith } from '../../../support/daemon.js'
import { recording, tlsServer, type Answering, type Recorded } from '../../../support/servers/tls-server.js'
import { framesOf } from '../../../support/turns.js'

const VALUE = 'tok-5f3e9a7b1c2d4860/AbC+xyz'
const PLACEHOLDER = /^sbxs_[A-Za-z0-9]{32}$/
/** An address that is not the loopback of a conversation. */
const HERE = Object.values(networkInterfaces())
  .flatMap(all => all ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address

const possible = HERE === undefined ? { skip: 'this machine has no address but its loopback' } : walled()

const echo: Answering = (asked, answer) => void answer.end(JSON.stringify(asked))

const world = async (t: Test, answering = echo) => {
  const { requests, port } = await tlsServer(t, answering, HERE)
  const daemon = await daemonWith(t, ['agent', 'secrets', 'settings', 'activity'])
  const { client } = daemon
  await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
  await client.call('POST /secrets', { key: 'API', value: VALUE, hosts: [HERE!] })
  await client.call('POST /secrets', { key: 'ELSEWHERE', value: `${VALUE}2`, hosts: ['api.example'] })
  const allow = (...more: string[]) =>
    client.call('POST /settings/patch', { set: { networkAllow: [`${HERE}:${port}`, ...more] } })
  await allow()
  const turn = async (prompt: string): Promise<Frame[]> => {
    await client.call('POST /agent', { conversationId: 'c', prompt })
    return (await framesOf(client, 'c').all()).map(({ event }) => event)
  }
  return { ...daemon, allow, requests, turn, url: `https://${HERE}:${port}/` }
}

/** A server by another name than that of the host with the value. */
const otherServer = async (t: Test, answering = echo) => {
  const requests: Recorded[] = []
  const server = createServer((asked, answer) => void recording(requests, answering)(asked, answer))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => void server.close())
  return { requests, host: `localhost:${(server.address() as AddressInfo).port}` }
}

/** All files below a folder, as one text. */
const everything = (folder: string): string =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map(name => join(folder, name))
    .filter(path => statSync(path, { throwIfNoEntry: false })?.isFile())
    .map(path => readFileSync(path, 'latin1'))
    .join('\n')

const forms = (value: string): string[] => [
  value,
  encodeURIComponent(value),
  Buffer.from(value).toString('base64').slice(0, -4),
  Buffer.from(value).toString('hex'),
]

t.test('a bound value reaches its host and never enters the turn in any form', possible, async t => {
  const { requests, turn, url, data, workspace, client } = await world(t)
  t.ok(VALUE.length >= LEAST_MASKED)
  const frames = await turn(
    [
      `run curl -sS -m 20 -H "authorization: Bearer {{secret:API}}" ${url}first`,
      'run printf %s {{secret:API}} > held.txt; env > env.txt; tr "\\0" "\\n" < /proc/self/environ >> env.txt',
      `run KEY={{secret:API}} ${process.execPath} -e 'fetch("${url}node", { headers: { "x-key": process.env.KEY } })'`,
      `fetch ${url}fetch`,
    ].join('\n'),
  )
  const shown = JSON.stringify(frames)
  t.equal(requests.find(({ url }) => url === '/first')?.headers.authorization, `Bearer ${VALUE}`, shown.slice(-3000))
  t.equal(requests.find(({ url }) => url === '/node')?.headers['x-key'], VALUE, shown.slice(-3000))
  t.match(shown, /Bearer \{\{secret:API\}\}/, 'the response of the echo server is masked')
  t.match(readFileSync(join(workspace, 'held.txt'), 'utf8'), PLACEHOLDER)
  const { messages } = await client.call('GET /agents/{id}/transcript', { id: 'c' })
  for (const [name, text] of [
    ['frames', shown],
    ['transcript', JSON.stringify(messages)],
    ['data', everything(data)],
    ['workspace', everything(workspace)],
  ] as const)
    for (const form of forms(VALUE)) t.notOk(text.includes(form), `${name}: no ${form.slice(0, 6)}…`)
  const { uses } = await client.call('GET /secrets/uses', {})
  t.strictSame(
    uses.map(({ name, detail, conversationId }) => [name, detail, conversationId]),
    [['API', `GET ${HERE}`, 'c']],
    'the use log has one entry for this turn and host',
  )
})

t.test(
  'the placeholder of a value bound elsewhere is sent unchanged, and the record and the run say so',
  possible,
  async t => {
    const { requests, turn, url, client } = await world(t)
    const frames = await turn(`run curl -sS -m 20 -H "x-one: {{secret:API}}" -H "x-two: {{secret:ELSEWHERE}}" ${url}`)
    const { headers } = requests[0]!
    t.equal(headers['x-one'], VALUE)
    t.match(headers['x-two'], PLACEHOLDER)
    const { events } = await client.call('GET /activity', { type: 'secret.misdirected' })
    t.match(events[0], { conversationId: 'c', content: /\{\{secret:ELSEWHERE\}\}: it is bound to api\.example/ })
    t.ok(frames.some(frame => frame.kind === 'notice' && frame.source === 'network' && /ELSEWHERE/.test(frame.text)))
  },
)

t.test('a changed binding or a replaced value takes effect at the next request', possible, async t => {
  const { requests, url, client, turn } = await world(t)
  const ask = (path: string, how = '') => `run curl -sS ${how} -m 20 -H "x-key: {{secret:API}}" ${url}${path}`
  await turn(ask('one'))
  await client.call('POST /secrets', { key: 'API', value: `${VALUE}-new` })
  await turn(ask('two'))
  await client.call('POST /secrets', { key: 'API', value: '__vaulted__', hosts: ['other.example'] })
  await turn(ask('three', '-k'))
  const [one, two, three] = requests.map(({ headers }) => headers['x-key'])
  t.strictSame([one, two], [VALUE, `${VALUE}-new`])
  t.match(three, PLACEHOLDER)
})

t.test('in a shared network a bound reference is refused with the reason', async t => {
  const { client, turn } = await world(t)
  await client.call('POST /settings/patch', { set: { network: 'shared' } })
  t.match(JSON.stringify(await turn('run echo {{secret:API}} > made.txt')), /is bound to .* this network is shared/)
})

t.test('a host that redirects elsewhere gets the value, and the other host the placeholder', possible, async t => {
  const other = await otherServer(t)
  const { requests, turn, url, allow } = await world(t, (_, answer) => {
    answer.writeHead(302, { location: `http://${other.host}/` }).end()
  })
  await allow(other.host)
  await turn(`run curl -sS -L -m 20 -H "x-key: {{secret:API}}" ${url}`)
  t.equal(requests[0]?.headers['x-key'], VALUE)
  t.match(other.requests[0]?.headers['x-key'], PLACEHOLDER)
})

t.test('a server gets a value that is bound to no host; people and files see its reference', possible, async t => {
  const given = `${VALUE}-unbound`
  const { requests, host } = await otherServer(t, ({ headers: { authorization = '' } }, answer) => {
    const said = authorization.slice('Bearer '.length)
    answer.end(`${said}\n${JSON.stringify({ said })}\n${encodeURIComponent(said)}\n${btoa(said)}`)
  })
  const { client, allow, data, workspace } = await world(t)
  await allow(host)
  await client.call('POST /secrets', { key: 'FREE', value: given })
  const prompt = `run curl -sS -m 20 -H "authorization: Bearer {{secret:FREE}}" http://${host}/`
  await client.call('POST /agent', { conversationId: 'c', permissionMode: 'default', prompt })
  const watched = framesOf(client, 'c')
  const card = await watched.until(({ kind }) => kind === 'permission')
  t.match(JSON.stringify(card), /Bearer \{\{secret:FREE\}\}/)
  await client.call('POST /agent/reply', { kind: 'permission', requestId: card.requestId, decision: 'once' })
  const frames = JSON.stringify(await watched.all())
  t.equal(requests[0]?.headers.authorization, `Bearer ${given}`, frames.slice(-2000))
  t.match(frames, /\{\{secret:FREE\}\}\\n\{\\"said\\":\\"\{\{secret:FREE\}\}\\"\}\\n(\{\{secret:FREE\}\}(\\n)?){2}/)
  const [transcript, activity] = await Promise.all([
    client.call('GET /agents/{id}/transcript', { id: 'c' }),
    client.call('GET /activity', { limit: 500 }),
  ])
  const log = everything(join(data, 'logs'))
  for (const [name, text] of [
    ['frames', frames],
    ['transcript', JSON.stringify(transcript)],
    ['activity', JSON.stringify(activity)],
    ['command log', log],
  ] as const)
    t.match(text, '{{secret:FREE}}', name)
  const all = [frames, JSON.stringify([transcript, activity]), everything(data), everything(workspace)].join('\n')
  t.same(
    forms(given).filter(form => all.includes(form)),
    [],
  )
})
