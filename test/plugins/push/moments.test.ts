import t from 'tap'
import type { PushChannel } from '../../../plugins/push/contract.js'
import { automation } from '../../support/automations.js'
import { between, until } from '../../support/browser/browser.js'
import { daemonWith } from '../../support/daemon.js'
import { joined } from '../../support/joined.js'
import { exactly } from '../../support/lists.js'
import { pushService } from '../../support/servers/push-service.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { loopEnd, loopOf } from '../loops/support.js'

const GROUPS = ['push', 'system', 'agent', 'agents', 'needs', 'approvals', 'loops', 'automations', 'settings', 'areas']

t.test('the three moments', async t => {
  const service = await pushService(t)
  const daemon = await daemonWith(t, GROUPS, {
    deployment: { push: { privateNetworks: true } },
    files: { 'site/index.html': 'hello\n' },
  })
  const { client } = daemon
  const relay = (deviceId: string): PushChannel => ({
    kind: 'relay',
    url: `${service.url}/relay`,
    ...{ deviceId, secret: 'a-secret' },
  })
  await client.call('POST /areas', { id: 'site', label: 'Site', folders: ['site'] })
  const cas = await joined(daemon, 'Cas', 'collaborator')
  const mia = await joined(daemon, 'Mia', 'maintainer')
  const ada = await joined(daemon, 'Ada', 'collaborator', ['site'])
  const people = { owner: client, cas: cas.client, mia: mia.client, ada: ada.client }
  for (const [name, own] of Object.entries(people)) await own.call('POST /push/subscribe', relay(name))
  /** The tags that each device got since this was last asked, without those of nobody. */
  const seen: { [name: string]: number } = {}
  const news = () =>
    Object.fromEntries(
      Object.keys(people).flatMap(name => {
        const all = service.relayed(name)
        const fresh = all.slice(seen[name] ?? 0).map(({ tag }) => tag)
        seen[name] = all.length
        return fresh.length > 0 ? [[name, fresh]] : []
      }),
    )
  const came = async (tag: string, device = 'owner') => {
    await until(() => service.relayed(device).some(one => one.tag === tag))
  }

  await t.test('a finished turn is told to the person who started it, a stopped one to nobody', async t => {
    await runTurn(cas.client, 'of-cas', 'say ready\n| and more words')
    await came('turn-of-cas', 'cas')
    t.same(news(), { cas: ['turn-of-cas'] })
    t.match(service.relayed('cas'), exactly({ title: 'A turn finished', body: 'say ready | and more words' }))
    await cas.client.call('POST /agent', { conversationId: 'stops', prompt: 'wait 60s' })
    await cas.client.call('POST /agent/stop', { conversationId: 'stops' })
    const { client: token } = await daemon.token('drive')
    await runTurn(token, 'of-token', 'say ready')
    await came('turn-of-token')
    await runTurn(cas.client, 'fails', 'refuse provider-outage it is over')
    await came('turn-fails', 'cas')
    t.same(news(), { owner: ['turn-of-token'], cas: ['turn-fails'] })
    t.match(service.relayed('cas').at(-1), { body: /^Failed: / })
  })

  await t.test('who watches is not told, who is idle is', async t => {
    const over = new AbortController()
    const events = await cas.client.call('GET /events', { clientId: 'tab-1' }, { signal: over.signal })
    const follow = (async () => {
      for await (const _ of events) continue
    })().catch(() => {})
    const isHere = async () => (await between(daemon, 'members.present')).present.length > 0
    await until(isHere)
    await runTurn(cas.client, 'watched', 'say ready')
    await cas.client.call('POST /system/presence', { clientId: 'tab-1', idle: true })
    await runTurn(cas.client, 'idle', 'say ready')
    await came('turn-idle', 'cas')
    t.same(news(), { cas: ['turn-idle'] })
    over.abort()
    await follow
  })

  await t.test('a card is told to the owner too, unless it is answered within 3 s', async t => {
    const ask = async (conversationId: string) => {
      await cas.client.call('POST /agent', { conversationId, prompt: 'ask Go on?\n| Yes: do\n| No: stop' })
      return framesOf(cas.client, conversationId).until(({ kind }) => kind === 'question')
    }
    const { requestId } = await ask('quick')
    await cas.client.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'Go on?': 'Yes' } })
    await ask('slow')
    await came('awaiting-slow')
    await came('awaiting-slow', 'cas')
    const { owner: owner = [], cas: own = [], ...others } = news()
    t.same(owner, ['awaiting-slow'])
    t.same(
      own.filter(tag => tag.startsWith('awaiting')),
      ['awaiting-slow'],
    )
    t.same(others, {})
    t.match(service.relayed('owner').at(-1), {
      ...{ title: 'An agent waits for you', body: 'Go on?', url: '/?conversation=slow', requireInteraction: true },
    })
    await cas.client.call('POST /agent/stop', { conversationId: 'slow' })
  })

  await t.test('a need is told once, one of a secret to maintainers too', async t => {
    const need = { conversationId: 'of-cas', kind: 'information', title: 'Which region?', why: 'It is asked.' } as const
    await cas.client.call('POST /needs', { ...need, dedupe: 'region' })
    await came('awaiting-of-cas')
    await cas.client.call('POST /needs', { ...need, dedupe: 'region' })
    const fields = [{ key: 'token', label: 'Token', type: 'secret', required: true, secretKey: 'TOKEN' } as const]
    await client.call('POST /needs', { ...need, conversationId: 'of-token', kind: 'secret', fields })
    await came('awaiting-of-token', 'mia')
    await came('awaiting-of-token')
    t.same(news(), {
      owner: ['awaiting-of-cas', 'awaiting-of-token'],
      cas: ['awaiting-of-cas'],
      mia: ['awaiting-of-token'],
    })
  })

  await t.test('what is filed for approval is told to maintainers once', async t => {
    const post = { platform: 'webhook', target: 'https://example.org/', content: 'hello' }
    const { id } = await cas.client.call('POST /approvals', { kind: 'post', post })
    await came(`approval-${id}`)
    await came(`approval-${id}`, 'mia')
    await cas.client.call('POST /approvals', { id, kind: 'post', post })
    const trigger = { kind: 'event' } as const
    await client.call('POST /automations', automation('nightly', { trigger, requireApproval: true }))
    const { url, token } = await client.call('GET /automations/{id}/token', { id: 'nightly' })
    await fetch(`${url}?token=${token}`, { method: 'POST' })
    const [wake] = (await client.call('GET /automations/pending')).approvals
    await came(`approval-${wake!.id}`, 'mia')
    const tags = news()
    t.same(tags['mia']?.filter(tag => tag === `approval-${id}`).length, 1)
  })

  await t.test('a loop is told at its end, its rounds are not', async t => {
    await cas.client.call('POST /loops', loopOf('loops', { maxIterations: 2 }))
    await loopEnd(daemon, 'loops')
    await came('turn-loops', 'cas')
    const [told] = service.relayed('cas').slice(-1)
    t.match(told, { tag: 'turn-loops', body: 'The loop is exhausted: The check holds.' })
    t.equal(service.relayed('cas').filter(({ tag }) => tag === 'turn-loops').length, 1)
  })

  await t.test('people limited to areas are told of their own conversations', async t => {
    news()
    await runTurn(ada.client, 'of-ada', 'say ready', { startIn: 'site' })
    await came('turn-of-ada', 'ada')
    t.same(news(), { ada: ['turn-of-ada'] })
  })

  await t.test('deliveries to a person who is removed end', async t => {
    await client.call('DELETE /members', { email: cas.email })
    await runTurn(client, 'last', 'say ready')
    await came('turn-last')
    t.notMatch(news(), { cas: [] })
  })
})
