import t from 'tap'
import { PushDelivery } from '../../../plugins/push/delivery.js'
import type { PushDevice } from '../../../plugins/push/devices.js'
import { notificationOf, TEST_NOTIFICATION } from '../../../plugins/push/notification.js'
import { PushRates } from '../../../plugins/push/rates.js'
import { concernedBy } from '../../../plugins/push/recipients.js'
import type { Member } from '../../../sdk/kernel.js'
import type { Role } from '../../../sdk/types.js'
import { exactly } from '../../support/lists.js'
import { decryptPush, newSubscription, pushService } from '../../support/servers/push-service.js'

const deviceAt = (url: string): PushDevice => ({
  channel: { kind: 'relay', url: `${url}/relay`, deviceId: 'phone', secret: 'a' },
  ...{ person: 'ada@example.org', createdAt: 1 },
})

t.test('deliveries', async t => {
  const answers: number[] = []
  const service = await pushService(t, () => answers.shift() ?? 201)
  const warned: string[] = []
  let isCurrent = true
  const delivery = new PushDelivery({
    keys: () => Promise.reject(new Error('no keys')),
    reach: async () => ({ near: true, listeners: [] }),
    log: { warn: (message, fields) => void warned.push(`${message} ${JSON.stringify(fields)}`) },
    signal: new AbortController().signal,
    isCurrent: () => isCurrent,
    retriesMs: [1, 1],
  })
  const device = deviceAt(service.url)
  const sent = () => service.requests.splice(0).length

  await t.test('a service that fails once is asked again, and the message is delivered once', async t => {
    answers.push(500)
    t.equal(await delivery.deliver(device, TEST_NOTIFICATION), 'taken')
    t.equal(sent(), 2)
  })

  await t.test('three failures end it, and the log does not contain the address', async t => {
    answers.push(500, 429, 302)
    t.match(await delivery.deliver(device, TEST_NOTIFICATION), { failed: 'it answered 302' })
    t.equal(sent(), 3)
    t.match(warned, exactly(/was not delivered .*"to":"127\.0\.0\.1:\d+"/))
    t.notMatch(warned.join(), /\/relay/)
  })

  await t.test('an address that cannot be reached any more is gone at once', async t => {
    for (const status of [403, 404, 410]) {
      answers.push(status)
      t.equal(await delivery.deliver(device, TEST_NOTIFICATION), 'gone', String(status))
      t.equal(sent(), 1)
    }
  })

  await t.test('a device that was registered for another person meanwhile gets nothing', async t => {
    isCurrent = false
    await delivery.deliver(device, TEST_NOTIFICATION)
    t.equal(sent(), 0)
  })
})

t.test('a long text is cut at a word, and the longest message is decrypted', async t => {
  const service = await pushService(t)
  const subscription = newSubscription(`${service.url}/send/one`)
  const pair = newSubscription('')
  const delivery = new PushDelivery({
    keys: async () => ({ publicKey: pair.channel.keys.p256dh, privateKey: pair.privateKey }),
    reach: async () => ({ near: true, listeners: [] }),
    log: { warn: () => {} },
    signal: new AbortController().signal,
    isCurrent: () => true,
  })
  const words = notificationOf({ moment: 'finished', conversationId: 'c 1', text: 'several words '.repeat(1_000) })!
  t.match(words, {
    url: '/?conversation=c%201',
    tag: 'turn-c 1',
    body: /^(several words )+several…$|^(several words ?)+…$/,
  })
  t.ok(words.body.length <= 200 && words.body.length > 180)
  const faces = notificationOf({ moment: 'stuck', conversationId: 'c', text: '😀'.repeat(4_000) })!
  t.equal([...faces.body].length, 200)
  t.equal(await delivery.deliver({ ...subscription, person: 'a', createdAt: 1 }, faces), 'taken')
  const { bytes } = service.requests[0]!
  t.ok(bytes.length < 3 * 1024)
  t.same(JSON.parse(String(decryptPush(bytes, subscription))), faces)
})

t.test('what it is about is in url and tag, and only what waits stays until it is answered', async t => {
  const about = (given: Parameters<typeof notificationOf>[0]) => notificationOf(given)
  t.equal(about({ moment: 'finished', text: 'x' }), undefined)
  t.match(about({ moment: 'approval', approvalId: 'a-1', text: 'a\nb\u202e' }), {
    ...{ url: '/?approval=a-1', tag: 'approval-a-1', body: 'a b', requireInteraction: true },
  })
  t.match(about({ moment: 'approval', conversationId: 'c', text: 'x' }), { url: '/?conversation=c', tag: 'approval-c' })
  t.equal(about({ moment: 'finished', conversationId: 'c', text: 'x' })!.requireInteraction, undefined)
})

t.test('each moment concerns its people', async t => {
  const member = (email: string, role: Role): Member => ({ email, role, grantedBy: '', grantedAt: 1, bound: true })
  const all = [member('own', 'owner'), member('main', 'maintainer'), member('col', 'collaborator')]
  const told = (message: Partial<Parameters<typeof concernedBy>[0]>) =>
    concernedBy({ moment: 'finished', text: '', ...message }, all).map(({ email }) => email)
  t.same(told({ startedBy: 'col' }), ['col'])
  for (const startedBy of ['token:own', 'sandbox:loop', 'gone@example.org']) t.same(told({ startedBy }), ['own'])
  t.same(told({ moment: 'stuck', startedBy: 'col' }), ['own', 'col'])
  t.same(told({ moment: 'stuck', startedBy: 'col', maintainers: true }), ['own', 'main', 'col'])
  t.same(told({ moment: 'approval', startedBy: 'col' }), ['own', 'main'])
})

t.test('a tag interrupts once in 5 s, a device 60 times an hour', async t => {
  let now = 1_000_000
  const rates = new PushRates(() => now)
  t.ok(rates.admitsTag('ada', 'turn-a'))
  t.notOk(rates.admitsTag('ada', 'turn-a'))
  t.ok(rates.admitsTag('ada', 'turn-b') && rates.admitsTag('bea', 'turn-a'))
  now += 5_000
  t.ok(rates.admitsTag('ada', 'turn-a'))
  for (let nth = 0; nth < 60; nth++) t.ok(rates.admitsDevice('phone'))
  t.notOk(rates.admitsDevice('phone'))
  t.ok(rates.admitsDevice('tablet'))
  now += 3_600_000
  t.ok(rates.admitsDevice('phone'))
})
