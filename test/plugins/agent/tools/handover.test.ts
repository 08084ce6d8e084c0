import t from 'tap'
import type { Frame } from '../../../../plugins/agent/contract.js'
import { wallKind } from '../../../../sdk/node/wall/wall.js'
import { PAGES, siteOf, withChromium } from '../../../support/browser/browser.js'
import { daemonWith } from '../../../support/daemon.js'
import { framesOf, runTurn } from '../../../support/turns.js'

const GROUPS = ['system', 'agent', 'agents', 'settings']
const said = (frames: readonly Frame[]): string =>
  frames.map(frame => (frame.kind === 'delta' ? frame.text : '')).join('')
const enforced = (await wallKind()) !== 'none'

t.test('an agent uses a browser in the network of its conversation, and hands it over', withChromium(), async t => {
  const daemon = await daemonWith(t, GROUPS)
  const { client } = daemon
  const site = await siteOf(t, PAGES)
  const local = `http://localhost:${site.port}/`
  const running = async () => (await client.call('GET /system/browsers')).sessions.filter(each => each.running)

  if (enforced) {
    const barred = said(await runTurn(client, 'barred', `browse ${local}\nsay $exit $out`))
    t.match(barred, /^1 .*nothing is listening on port/, 'ports of the machine are not those of the conversation')
    t.same(site.heard, [])
    await client.call('POST /settings/patch', { set: { networkAllow: [`localhost:${site.port}`] } })
  }

  const { run } = await client.call('POST /agent', {
    conversationId: 'helped',
    prompt: `browse ${local}\nsay $out\nhandover browser Sign in, please.\nsay $out`,
  })
  const watched = framesOf(client, 'helped', { run })
  const card = await watched.until(frame => frame.kind === 'browser_help')
  const [session] = await running()
  t.match(session, { conversationId: 'helped', server: 'web', name: /^agent-[0-9a-f]{24}$/ })
  t.match(card, { session: session!.name, account: 'web', message: 'Sign in, please.' })
  const { agents } = await client.call('GET /agents')
  t.equal(agents.find(({ id }) => id === 'helped')?.attention.help, true)
  await client.call('POST /agent/reply', {
    ...{ kind: 'browser_help', requestId: card.requestId, helped: true, note: 'as Ada' },
  })
  const frames = (await watched.all()).map(({ event }) => event)
  t.match(said(frames), /\* p\d+ http:\/\/localhost:\d+\/ Home[^]*heading "Hello"[^]*link "go" \[ref=e\d+\]/)
  t.match(said(frames), /the person has done it: as Ada/)
  t.equal(frames.filter(({ kind }) => kind === 'browser').length, 1, 'the browser is named once')
  t.same(await running(), [], 'it ends with the turn')
})

t.test('a browser that a person closes is not waited for', withChromium(), async t => {
  const { client } = await daemonWith(t, GROUPS)
  const { run } = await client.call('POST /agent', {
    conversationId: 'closed',
    prompt: 'browse about:blank\nhandover browser Look.\nsay $out\nbrowse about:blank\nsay again $exit',
  })
  const watched = framesOf(client, 'closed', { run })
  const card = await watched.until(frame => frame.kind === 'browser_help')
  const { sessions } = await client.call('GET /system/browsers')
  await client.call('DELETE /system/browsers/{name}', { name: sessions[0]!.name })
  const frames = (await watched.all()).map(({ event }) => event)
  t.match(
    frames.find(({ kind }) => kind === 'resolved'),
    { requestId: card.requestId },
  )
  t.match(said(frames), /nobody helped.*again 0/s, 'the agent opens another')
})

t.test('a terminal is handed over behind the wall of the turn, and ends with the help', async t => {
  const { client } = await daemonWith(t, GROUPS)
  const { run } = await client.call('POST /agent', {
    conversationId: 'typed',
    isolated: true,
    prompt: 'handover terminal Type the password.\nsay $out',
  })
  const watched = framesOf(client, 'typed', { run })
  const card = await watched.until(frame => frame.kind === 'terminal_help')
  const { session: name } = card as Frame & { kind: 'terminal_help' }
  const found = async () => (await client.call('GET /system/terminals')).sessions.find(each => each.name === name)
  t.match(await found(), { kind: 'agent', running: true })
  t.match(
    watched.seen.map(({ event }) => event).find(({ kind }) => kind === 'terminal'),
    { session: name },
  )
  await client.call('POST /agent/reply', { kind: 'terminal_help', requestId: card.requestId, helped: false })
  const frames = (await watched.all()).map(({ event }) => event)
  t.match(said(frames), /the person could not do it/)
  t.notOk((await found())?.running)
})

t.test('nobody is asked where nobody watches, and nothing is handed over that is not open', async t => {
  const { client } = await daemonWith(t, GROUPS)
  const unattended = await runTurn(client, 'alone', 'handover terminal Help.\nsay $out', { unattended: true })
  t.match(said(unattended), /nobody watches this turn/)
  t.notOk(unattended.some(({ kind }) => kind === 'terminal_help'))
  t.match(said(await runTurn(client, 'none', 'handover browser Help.\nsay $out')), /no browser is open to hand over/)
})
