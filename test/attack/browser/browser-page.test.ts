import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chromium, type Browser } from 'playwright-core'
import t, { type Test } from 'tap'
import { findChromium } from '../../../plugins/system/browsers/chromium.js'
import { siteOf, withChromium } from '../../support/browser/browser.js'
import { daemonWith, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { ATTEMPTS, WORKER } from './browser-attempts.js'
import { bytesOf } from '../support.js'

/** A browser of a person's machine with its default settings and direct network access, and with own host names. */
const browserOf = async (t: Pick<Test, 'teardown'>): Promise<Browser> => {
  const browser = await chromium.launch({
    executablePath: (await findChromium())!,
    chromiumSandbox: process.getuid?.() !== 0,
    args: [
      '--host-resolver-rules=MAP *.evil.example 127.0.0.1',
      '--disable-features=HttpsUpgrades,HttpsFirstBalancedModeAutoEnable',
    ],
  })
  t.teardown(() => browser.close())
  return browser
}

const PAGES = {
  '/': '<!doctype html><title>Evil</title><body>',
  '/worker.js': (_: unknown, response: ServerResponse) =>
    void response.writeHead(200, { 'content-type': 'text/javascript' }).end(WORKER),
}

/** The answers of a server that a page of an address can read with all attempts. */
const tries = async (browser: Browser, address: string, base: string, token = 'sbs_x.y'): Promise<string[]> => {
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(address)
  const read = (await page.evaluate(`(${ATTEMPTS})(${JSON.stringify(base)}, ${JSON.stringify(token)})`)) as string[]
  await context.close()
  return read
}

const stateOf = async (daemon: Support) => ({
  files: bytesOf(daemon.workspace, /^\.git$/),
  agents: await daemon.client.call('GET /agents'),
  tokens: await daemon.client.call('GET /system/control/tokens'),
  browsers: await daemon.client.call('GET /system/browsers'),
  sessions: (await daemon.client.call('GET /system/sessions')).sessions.map(({ id }) => id),
  claimed: ((await (await fetch(`${daemon.url}/system/sign-in`)).json()) as { claimed: boolean }).claimed,
})

t.test('a page of another origin reads nothing of the sandbox and changes nothing', withChromium(), async t => {
  const daemon = await daemonWith(t, ['system', 'agent', 'agents', 'settings'])
  const site = await siteOf(t, PAGES)
  const browser = await browserOf(t)
  const before = await stateOf(daemon)
  const requests: string[] = []
  const hear = (message: unknown) => {
    const { request } = message as { request: IncomingMessage }
    if (request.headers.host?.endsWith(new URL(daemon.url).port)) requests.push(request.method!)
  }
  subscribe('http.server.request.start', hear)
  t.teardown(() => void unsubscribe('http.server.request.start', hear))
  t.match(before.sessions, exactly(String), 'the owner is signed in elsewhere')

  const open = createServer((request, response) => {
    const { origin = '*' } = request.headers
    response
      .writeHead(200, {
        'access-control-allow-origin': origin,
        'access-control-allow-credentials': 'true',
        'access-control-allow-headers': '*',
      })
      .end('all of it')
  }).listen(0, '127.0.0.1')
  await once(open, 'listening')
  t.teardown(() => void (open.closeAllConnections(), open.close()))
  const heard = await tries(browser, site.url, `http://127.0.0.1:${(open.address() as AddressInfo).port}`)
  for (const kind of ['get', 'worker', 'service worker'])
    t.ok(
      heard.some(line => line.startsWith(kind)),
      `${kind}: a server that allows all origins is read`,
    )

  for (const address of [site.url, `http://www.evil.example:${site.port}`]) {
    t.same(await tries(browser, address, daemon.url, daemon.session), [], `${address}, even with a session token`)
    t.same(
      await tries(browser, address, `http://localhost:${new URL(daemon.url).port}`),
      [],
      `${address}, by another name`,
    )
  }
  t.ok(requests.filter(method => method === 'POST').length > 40, 'although every kind of request was sent')
  t.same(await stateOf(daemon), before, 'nothing has changed')
})

t.test('a page whose name resolves to the sandbox does not get its origin', withChromium(), async t => {
  const daemon = await daemonWith(t, ['system'])
  const browser = await browserOf(t)
  const { port } = new URL(daemon.url)
  // Without the content security policy of the sandbox, which blocks every request of a page.
  const page = await browser.newPage({ bypassCSP: true })
  const rebound = `http://rebound.evil.example:${port}`
  for (const path of ['/', '/reference', '/openapi.json', '/info']) {
    const answer = await page.goto(rebound + path)
    t.equal(answer?.status(), 403, path)
  }
  t.match(
    await (await page.goto(`${rebound}/health`))?.json(),
    { ok: true, sandboxId: undefined },
    'it learns only that a server exists',
  )
  const inside = await page.evaluate(`(() => {
    const status = (path, options) => fetch(path, options).then(answer => answer.status, () => 0)
    const post = { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } }
    const paths = ['/info', '/system/sign-in', '/system/session']
    return Promise.all(paths.flatMap(path => [status(path), status(path, post)]))
  })()`)
  t.same(inside, Array(6).fill(403), 'also from within that origin')
})

t.test('a file of the workspace that a media ticket serves runs nothing in a browser', withChromium(), async t => {
  const beacon = (from: string) => `fetch('/ran?${from}');new Image().src = '${site.url}/ran?${from}'`
  const files = (from: string): { readonly [name: string]: string } => ({
    'page.html': `<!doctype html><img src=x onerror="${beacon(`${from}-page`)}">`,
    'picture.svg': `<svg xmlns="http://www.w3.org/2000/svg" onload="${beacon(`${from}-picture`)}"/>`,
    'page.xhtml': `<html xmlns="http://www.w3.org/1999/xhtml"><body onload="${beacon(`${from}-xhtml`)}"/></html>`,
  })
  const TYPES = { 'page.html': 'text/html', 'picture.svg': 'image/svg+xml', 'page.xhtml': 'application/xhtml+xml' }
  const serve = (name: keyof typeof TYPES) => (_: unknown, response: ServerResponse) =>
    void response.writeHead(200, { 'content-type': TYPES[name] }).end(files('site')[name])
  const site = await siteOf(t, {
    '/ran': (_, response) => void response.end(),
    '/page.html': serve('page.html'),
    '/picture.svg': serve('picture.svg'),
    '/page.xhtml': serve('page.xhtml'),
  })
  const daemon = await daemonWith(t, ['system', 'workspace'], { files: files('sandbox') })
  const requests: string[] = []
  const hear = (message: unknown) => void requests.push((message as { request: IncomingMessage }).request.url!)
  subscribe('http.server.request.start', hear)
  t.teardown(() => void unsubscribe('http.server.request.start', hear))
  const browser = await browserOf(t)
  const ran = (from: string) => requests.filter(url => url.startsWith(`/ran?${from}-`)).map(url => url.slice(5))
  for (const name of Object.keys(TYPES)) {
    const { ticket } = await daemon.client.call('POST /workspace/media-ticket', { path: name })
    const address = `${daemon.url}/workspace/media?ticket=${ticket}`
    const page = await browser.newPage()
    const loaded = page.waitForEvent('download')
    await page.goto(address).catch(() => undefined)
    t.equal((await loaded).url(), address, `${name} is downloaded`)
    await page.goto(`${daemon.url}/health`)
    await page.evaluate(`Promise.all(['iframe', 'object', 'embed', 'img'].map(tag => new Promise(resolve => {
      const element = document.createElement(tag)
      element.onload = element.onerror = resolve
      element[tag === 'object' ? 'data' : 'src'] = ${JSON.stringify(address)}
      document.body.append(element)
      setTimeout(resolve, 300)
    })))`)
    await page.goto(`${site.url}/${name}`, { waitUntil: 'networkidle' })
    await page.close()
  }
  t.same([...new Set(ran('site'))].sort(), ['site-page', 'site-picture', 'site-xhtml'], 'another server runs them')
  t.same(ran('sandbox'), [])
})

t.test('only pages of an allowed origin get permission to reach a local machine', async t => {
  const daemon = await daemonWith(t, ['system'], { deployment: { http: { origins: ['https://app.example'] } } })
  const asked = async (origin: string) =>
    (
      await fetch(`${daemon.url}/info`, {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'GET', 'access-control-request-private-network': 'true' },
      })
    ).headers
  t.equal((await asked('https://app.example')).get('access-control-allow-private-network'), 'true')
  const evil = await asked('https://evil.example')
  t.same(
    [...evil.keys()].filter(name => name.startsWith('access-control')),
    [],
  )
})
