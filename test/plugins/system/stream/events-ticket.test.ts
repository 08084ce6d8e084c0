import { chromium } from 'playwright-core'
import t from 'tap'
import { findChromium } from '../../../../plugins/system/browsers/chromium.js'
import { siteOf, withChromium } from '../../../support/browser/browser.js'
import { daemonWith } from '../../../support/daemon.js'

const GROUPS = ['system', 'agent', 'agents']

/** The first events of a stream as text, until they match. */
const textOf = async (response: Response, fits: RegExp): Promise<string> => {
  let text = ''
  for await (const piece of response.body!.pipeThrough(new TextDecoderStream()) as unknown as AsyncIterable<string>) {
    text += piece
    if (fits.test(text)) return text
  }
  return text
}

t.test('a ticket for events opens only the event stream, any number of times', async t => {
  const daemon = await daemonWith(t, GROUPS)
  const { client, url } = daemon
  t.equal((await fetch(`${url}/events`)).status, 401)
  t.equal((await fetch(`${url}/events?ticket=nothing`)).status, 401)
  const { ticket, expiresAt } = await client.call('POST /system/ws-ticket', { for: 'events' })
  t.ok(Math.abs(expiresAt - Date.now() - 12 * 3_600_000) < 60_000, 'it is valid for 12 hours')
  for (let time = 0; time < 3; time++) {
    const left = new AbortController()
    t.match(
      await textOf(await fetch(`${url}/events?ticket=${ticket}`, { signal: left.signal }), /"hello"/),
      /"kind":"hello"/,
    )
    left.abort()
  }
  for (const path of ['/info', '/agents', '/system/sessions', '/bundles/download'])
    t.equal((await fetch(`${url}${path}?ticket=${ticket}`)).status, 401, path)
  const { ticket: other } = await client.call('POST /system/ws-ticket', { for: 'terminal' })
  t.equal(
    (await fetch(`${url}/events?ticket=${other}`)).status,
    401,
    'one for a terminal does not open the event stream',
  )
  await client.call('POST /system/sessions/revoke', {})
  t.equal((await fetch(`${url}/events?ticket=${ticket}`)).status, 401, 'it ends with its session')
})

t.test('over the stream limit an EventSource gets a retry time, and other clients get 429', async t => {
  const { client, url, fetch: asOwner } = await daemonWith(t, GROUPS)
  const { ticket } = await client.call('POST /system/ws-ticket', { for: 'events' })
  const left = new AbortController()
  t.teardown(() => left.abort())
  const first = await Promise.all(Array.from({ length: 16 }, () => asOwner('/events', { signal: left.signal })))
  t.ok(first.every(({ status }) => status === 200))
  t.match(await asOwner('/events'), { status: 429 })
  t.match(await fetch(`${url}/events?ticket=${ticket}`), { status: 429 })
  const turnedAway = await fetch(`${url}/events?ticket=${ticket}`, { headers: { accept: 'text/event-stream' } })
  t.equal(turnedAway.status, 200)
  t.match(await turnedAway.text(), /^retry: 1000\n\nretry: \d+000\n\nevent: error\ndata: \{"message":".*16.*"/)
})

t.test(
  'an EventSource of a browser follows from another origin, although the stream limit was reached at first',
  withChromium(),
  async t => {
    const site = await siteOf(t, { '/': '<!doctype html><title>Page</title>' })
    const daemon = await daemonWith(t, GROUPS, { deployment: { http: { origins: [site.url] } } })
    const { client, url } = daemon
    const browser = await chromium.launch({
      executablePath: (await findChromium())!,
      chromiumSandbox: process.getuid?.() !== 0,
    })
    t.teardown(() => browser.close())
    const page = await browser.newPage()
    await page.goto(site.url)
    const { ticket } = await client.call('POST /system/ws-ticket', { for: 'events' })
    const left = new AbortController()
    t.teardown(() => left.abort())
    const full = await Promise.all(Array.from({ length: 16 }, () => daemon.fetch('/events', { signal: left.signal })))
    t.ok(full.every(({ status }) => status === 200))
    const source = `${url}/events?ticket=${ticket}`
    await page.evaluate(`(() => {
    window.seen = []
    window.opened = 0
    const source = new EventSource(${JSON.stringify(source)})
    source.onopen = () => window.opened++
    source.onmessage = ({ data }) => window.seen.push(JSON.parse(data))
  })()`)
    const whenSo = (expression: string) => page.waitForFunction(expression, undefined, { timeout: 30_000 })
    await whenSo('window.opened > 0')
    t.same(await page.evaluate('window.seen'), [], 'it was refused at first')
    left.abort()
    await whenSo('window.seen.some(({ kind }) => kind === "hello")')
    await client.call('POST /agent', { conversationId: 'c-1', prompt: 'say hello' })
    await whenSo('window.seen.some(({ kind, agents }) => kind === "agents" && agents.some(({ id }) => id === "c-1"))')
  },
)
