import { chromium } from 'playwright-core'
import t from 'tap'
import { findChromium } from '../../plugins/system/browsers/chromium.js'
import { siteOf, withChromium } from '../support/browser/browser.js'
import { checkLanded, daemonFor, TURN } from './client-turn.js'

/** What the page runs: the turn, its events read as they come, the answer, the landing. */
const PAGE = `async ([url, session, turn]) => {
  const post = (path, body) => fetch(url + path, {
    method: 'POST',
    headers: { authorization: 'Bearer ' + session, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const { conversationId } = await (await post('/agent', turn)).json()
  const events = (await post('/agent/attach', { conversationId })).body.pipeThrough(new TextDecoderStream()).getReader()
  let text = '', reason = 'cut'
  for (;;) {
    const { value, done } = await events.read()
    if (done) break
    const blocks = (text + value).split('\\n\\n')
    text = blocks.pop()
    for (const block of blocks) {
      const data = JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? '{}')
      if (/^event: done$/m.test(block)) reason = data.reason
      if (data.event?.kind !== 'question') continue
      const { requestId, questions: [{ question }] } = data.event
      await post('/agent/reply', { kind: 'question', requestId, answers: { [question]: 'French' } })
    }
  }
  const { landed } = await (await post('/agents/' + conversationId + '/land', { mode: 'check' })).json()
  return { reason, landed, from: location.origin }
}`

t.test(
  'a page on another origin that the deployment names does a turn with a card and lands it',
  withChromium(),
  async t => {
    const site = await siteOf(t, { '/': '<!doctype html><title>Console</title>' })
    const daemon = await daemonFor(t, { deployment: { http: { origins: [site.url] } } })
    const browser = await chromium.launch({
      executablePath: (await findChromium())!,
      chromiumSandbox: process.getuid?.() !== 0,
    })
    t.teardown(() => browser.close())
    const page = await browser.newPage()
    await page.goto(site.url)
    const did = await page.evaluate(`(${PAGE})(${JSON.stringify([daemon.url, daemon.session, TURN])})`)
    t.same(did, { reason: 'completed', landed: true, from: site.url })
    await checkLanded(t, daemon)
  },
)
