import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { PushChannel } from '../../../plugins/push/contract.js'
import type { Deployment } from '../../../kernel/config/deployment.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { until } from '../../support/browser/browser.js'
import { daemonWith, folderOf, makeWorkspace } from '../../support/daemon.js'
import { joined } from '../../support/joined.js'
import { exactly } from '../../support/lists.js'
import { mustStaySecret } from '../../support/secret-search.js'
import { decryptPush, newSubscription, pushService, vapidClaims } from '../../support/servers/push-service.js'

const GROUPS = ['push', 'system']
const NEAR: Deployment = { push: { privateNetworks: true } }
const SECRET = 'relay-secret-0123456789'

const relayAt = (url: string, deviceId: string): PushChannel => ({
  kind: 'relay',
  url: `${url}/relay`,
  deviceId,
  secret: SECRET,
})

t.test('the example of RFC 8291 is decrypted', async t => {
  const channel = {
    kind: 'webpush',
    endpoint: 'https://push.example.net/',
    keys: {
      p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
      auth: 'BTBZMqHH6r4Tts7J_aSIgg',
    },
  } as const
  const body = Buffer.from(
    'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A'
      + '_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN',
    'base64url',
  )
  const opened = decryptPush(body, { channel, privateKey: 'q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94' })
  t.equal(String(opened), 'When I grow up, I want to be a watermelon')
})

t.test('devices', async t => {
  let status = 201
  const service = await pushService(t, () => status)
  const daemon = await daemonWith(t, GROUPS, { deployment: NEAR })
  mustStaySecret(daemon, [SECRET])
  const { client } = daemon
  const [cas, vic] = [await joined(daemon, 'Cas', 'collaborator'), await joined(daemon, 'Vic', 'viewer')]
  const subscription = newSubscription(`${service.url}/send/one`)
  const { channel } = subscription
  const isRegistered = async (id: string, whose = client) => (await whose.call('GET /push/config', { id })).subscribed

  await t.test('without a credential and with too little of one nothing is read or registered', async t => {
    const reader = await daemon.token('read')
    const editor = await daemon.token('editor')
    for (const [method, path, body] of [
      ['GET', '/push/config', undefined],
      ['POST', '/push/subscribe', channel],
      ['POST', '/push/unsubscribe', { id: 'phone' }],
      ['POST', '/push/test', {}],
    ] as const) {
      const send = async (headers: { [name: string]: string }) => {
        const type = body ? { 'content-type': 'application/json', ...headers } : headers
        return (await fetch(daemon.url + path, { method, headers: type, ...(body && { body: JSON.stringify(body) }) }))
          .status
      }
      t.equal(await send({}), 401, `${method} ${path}`)
      t.equal(await send({ 'x-sandbox-control': editor.token }), 403, `${method} ${path} with an editor token`)
      if (method === 'GET') continue
      t.equal(await send({ 'x-sandbox-control': reader.token }), 403, `${method} ${path} with a read token`)
      t.equal(await send({ authorization: `Bearer ${vic.session}` }), 403, `${method} ${path} as a viewer`)
    }
    t.match(await vic.client.call('GET /push/config', {}), { subscribed: false })
  })

  await t.test('two first calls get the same key, a point of P-256', async t => {
    const [one, other] = await Promise.all([client.call('GET /push/config'), cas.client.call('GET /push/config')])
    t.equal(one.publicKey, other.publicKey)
    t.equal(Buffer.from(one.publicKey, 'base64url').length, 65)
  })

  await t.test('unusable keys and addresses are refused with what was expected', async t => {
    const { keys } = channel
    const refused = async (given: object) => {
      const { status: found, message } = await refusalOf(() =>
        client.call('POST /push/subscribe', given as PushChannel),
      )
      return `${found} ${message}`
    }
    t.match(await refused({ ...channel, kind: 'sms' }), /^400 kind/)
    t.match(await refused({ ...channel, keys: { ...keys, auth: 'short' } }), /^400 keys\.auth: expected 16 bytes/)
    t.match(await refused({ ...channel, keys: { ...keys, auth: '****' } }), /^400 keys\.auth: expected base64url/)
    t.match(await refused({ ...channel, keys: { ...keys, p256dh: keys.auth } }), /^400 keys\.p256dh: expected 65 bytes/)
    const off = Buffer.alloc(65, 4).toString('base64url')
    t.match(await refused({ ...channel, keys: { ...keys, p256dh: off } }), /^400 keys\.p256dh: .* point of P-256/)
    t.match(await refused({ ...channel, endpoint: 'ftp://push.example.org/' }), /^400 endpoint: expected an https/)
    t.match(await refused({ ...channel, endpoint: service.url.replace('https', 'http') }), /^400 endpoint.*https/)
    t.match(await refused({ ...channel, endpoint: 'https://u:p@127.0.0.1/' }), /^400/)
    t.match(await refused({ ...relayAt(service.url, ''), deviceId: '' }), /^400 deviceId/)
    t.match(await refused(relayAt('https://169.254.169.254', 'phone')), /^422 url/)
    t.match(await refused(relayAt(daemon.url.replace('http', 'https'), 'phone')), /^422 url: .*sandbox itself/)
    t.match(await refusalOf(() => client.call('POST /push/unsubscribe', { id: '' })), { status: 400 })
  })

  await t.test('a test is decrypted by the browser, signed by the daemon, and posted to relays', async t => {
    await client.call('POST /push/subscribe', channel)
    await client.call('POST /push/subscribe', relayAt(service.url, 'phone'))
    t.ok(await isRegistered(channel.endpoint))
    t.notOk(await isRegistered(channel.endpoint, cas.client), 'of another person')
    t.same(await client.call('POST /push/test'), { delivered: 2 })
    const sent = service.requests.find(({ url }) => url === '/send/one')!
    const notification = JSON.parse(String(decryptPush(sent.bytes, subscription))) as object
    t.same(notification, {
      title: 'A test of your sandbox',
      body: 'Notifications reach this device.',
      url: '/',
      tag: 'test',
    })
    const { publicKey } = await client.call('GET /push/config')
    const { aud, exp } = vapidClaims(String(sent.headers.authorization), publicKey)
    t.equal(aud, service.url)
    t.ok(exp * 1_000 > Date.now() && exp * 1_000 <= Date.now() + 24 * 3_600_000)
    t.match(sent.headers, { 'content-encoding': 'aes128gcm', ttl: '86400', urgency: 'high', topic: /^[\w-]{32}$/ })
    t.match(service.relayed('phone'), exactly({ tag: 'test' }))
    const relayed = service.requests.find(({ url }) => url === '/relay')!
    t.equal(relayed.headers.authorization, `Bearer ${SECRET}`)
  })

  await t.test('a control token stands for the person who minted it', async t => {
    const { client: driver } = await daemon.token('drive')
    t.ok(await isRegistered('phone', driver))
    await driver.call('POST /push/subscribe', relayAt(service.url, 'tablet'))
    t.ok(await isRegistered('tablet'))
    await driver.call('POST /push/unsubscribe', { id: 'tablet' })
    t.notOk(await isRegistered('tablet'))
  })

  await t.test('a device is of one person, and of 21 the last is refused', async t => {
    await cas.client.call('POST /push/subscribe', relayAt(service.url, 'phone'))
    t.notOk(await isRegistered('phone'))
    t.ok(await isRegistered('phone', cas.client))
    await client.call('POST /push/unsubscribe', { id: 'phone' })
    t.ok(await isRegistered('phone', cas.client), 'nobody removes the device of another')
    for (let nth = 1; nth < 20; nth++)
      await cas.client.call('POST /push/subscribe', relayAt(service.url, `phone-${nth}`))
    await cas.client.call('POST /push/subscribe', relayAt(service.url, 'phone'))
    const more = () => cas.client.call('POST /push/subscribe', relayAt(service.url, 'phone-20'))
    t.match(await refusalOf(more), { status: 429, message: /has 20 devices/ })
    await cas.client.call('POST /push/unsubscribe', { id: 'phone' })
    await more()
  })

  await t.test('what a service does not know any more is gone, and an unknown device is fine', async t => {
    status = 500
    t.same(await client.call('POST /push/test'), { delivered: 0 })
    t.ok(await isRegistered(channel.endpoint))
    status = 410
    t.same(await client.call('POST /push/test'), { delivered: 0 })
    t.notOk(await isRegistered(channel.endpoint))
    t.same(await client.call('POST /push/test'), { delivered: 0 })
    t.same(await client.call('POST /push/unsubscribe', { id: channel.endpoint }), { ok: true })
    status = 201
  })

  await t.test('a person tests six times a minute', async t => {
    for (let nth = 5; nth <= 6; nth++) await client.call('POST /push/test')
    const refused = await refusalOf(() => client.call('POST /push/test'))
    t.match(refused, { status: 429, message: /at most 6 requests a minute of one person/ })
  })

  await t.test('nobody watching the events learns an address', async t => {
    const over = new AbortController()
    for await (const event of await cas.client.call('GET /events', {}, { signal: over.signal })) {
      if (event.kind === 'hello') await client.call('POST /push/subscribe', relayAt(service.url, 'watched-phone'))
      if (event.kind !== 'runtimeChanged' || !event.domains.includes('push')) continue
      t.notMatch(JSON.stringify(event), /watched-phone/)
      break
    }
    over.abort()
  })

  await t.test('the devices of a person who is removed are forgotten', async t => {
    await client.call('DELETE /members', { email: cas.email })
    const rows = () => readdirSync(join(daemon.data, 'files', 'push', 'devices')).length
    await until(() => rows() === 1)
    t.ok(await isRegistered('watched-phone'), 'the one of the owner stays')
  })
})

t.test('private addresses are not asked', async t => {
  const service = await pushService(t)
  const { client } = await daemonWith(t, GROUPS)
  const { channel } = newSubscription('')
  for (const endpoint of ['http://169.254.169.254/', service.url, service.url.replace('127.0.0.1', 'localhost')])
    t.match(await refusalOf(() => client.call('POST /push/subscribe', { ...channel, endpoint })), {
      status: 422,
      message: /^endpoint: /,
    })
  t.match(service.requests, exactly())
})

/** The folders of a daemon that starts several times. */
const kept = (t: Test) => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  return { workspace, data }
}

t.test('key and devices outlast a restart, and a damaged row stops nothing', async t => {
  const where = kept(t)
  const service = await pushService(t)
  const first = await daemonWith(t, GROUPS, { ...where, deployment: NEAR })
  const { publicKey } = await first.client.call('GET /push/config')
  await first.client.call('POST /push/subscribe', relayAt(service.url, 'phone'))
  await first.stop()
  const second = await daemonWith(t, GROUPS, { ...where, deployment: NEAR })
  t.same(await second.client.call('GET /push/config', { id: 'phone' }), { publicKey, subscribed: true })
  await second.stop()
  const rows = join(where.data, 'files', 'push', 'devices')
  writeFileSync(join(rows, readdirSync(rows)[0]!), '{')
  const third = await daemonWith(t, GROUPS, { ...where, deployment: NEAR })
  t.same(await third.client.call('GET /push/config', { id: 'phone' }), { publicKey, subscribed: false })
  t.ok(third.logged.some(line => line.includes('a stored device cannot be read')))
  await third.client.call('POST /push/subscribe', relayAt(service.url, 'phone'))
  await third.stop()
  writeFileSync(join(where.data, 'files', 'push', 'key.json'), '{')
  const fourth = await daemonWith(t, GROUPS, { ...where, deployment: NEAR })
  t.match(await refusalOf(() => fourth.client.call('GET /push/config')), {
    status: 503,
    message: /key of push notifications cannot be read/,
  })
})
