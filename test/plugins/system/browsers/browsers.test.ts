import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Browsers, type BrowsersDeps } from '../../../../plugins/system/browsers/browsers.js'
import { findChromium } from '../../../../plugins/system/browsers/chromium.js'
import type { BrowserAct, BrowserActed } from '../../../../plugins/system/contract.js'
import {
  act,
  between,
  freshOf,
  PAGES,
  processesWith,
  siteOf,
  until,
  withChromium,
  withoutWindows,
} from '../../../support/browser/browser.js'
import { daemonWith, folderOf, makeWorkspace, root } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { talkTo } from '../../../support/sockets/client.js'

const shared = async (t: Test) => {
  const daemon = await daemonWith(t, ['system', 'activity'])
  return { daemon, site: await siteOf(t, PAGES) }
}

withoutWindows(t)

/** The browsers of a sandbox, without a daemon. */
const browsersIn = (t: Test, more: Partial<BrowsersDeps> = {}): Browsers => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  mkdirSync(join(data, 'system'), { recursive: true })
  const browsers = new Browsers({
    place: {
      workspace,
      data,
      logs: '',
      folder: join(data, 'system'),
      root,
      hidden: [],
      grants: { read: [], write: [] },
      limits: {},
      previews: { host: '127.0.0.1' },
      publicPages: {},
    },
    log: { info: () => {}, warn: () => {}, error: () => {} },
    signal: new AbortController().signal,
    listeners: async () => [],
    changed: () => {},
    ...more,
  })
  t.teardown(() => browsers.stop())
  return browsers
}

t.test('without a credential, and with a token, browsers cannot be closed or driven', async t => {
  const daemon = await daemonWith(t, ['system'])
  const calls = ['GET /system/browsers', 'DELETE /system/browsers/web-a', 'POST /system/browsers/web-a/page']
  const status = async (call: string, headers: { [name: string]: string }) => {
    const [method = '', path] = call.split(' ')
    const body = method === 'POST' ? { body: '{"action":"back"}' } : {}
    return (
      await fetch(daemon.url + path, { method, headers: { 'content-type': 'application/json', ...headers }, ...body })
    ).status
  }
  for (const call of calls) t.equal(await status(call, {}), 401, call)
  for (const scope of ['read', 'drive', 'land', 'editor'] as const) {
    const { token } = await daemon.token(scope)
    const got = await Promise.all(calls.map(call => status(call, { 'x-sandbox-control': token })))
    t.same(got, [scope === 'editor' ? 403 : 200, 403, 403], scope)
  }
})

t.test('an impossible request is refused before a browser is started', async t => {
  const daemon = await daemonWith(t, ['system'])
  const wrong = (more: object, name = 'web-a') =>
    daemon.fetch(`/system/browsers/${name}/page`, { method: 'POST', body: JSON.stringify(more) })
  for (const [more, field] of [
    [{ action: 'open' }, 'url'],
    [{ action: 'open', url: 'file:///etc/passwd' }, 'url'],
    [{ action: 'open', url: 'javascript:1' }, 'url'],
    [{ action: 'fly', url: 'about:blank' }, 'action'],
    [{}, 'action'],
    [{ action: 'goto', url: `https://x/${'a'.repeat(4000)}` }, 'url'],
  ] as const)
    t.match(
      await (await wrong(more)).json(),
      { reason: 'invalid', errors: exactly({ path: field }) },
      JSON.stringify(more).slice(0, 60),
    )
  t.equal((await wrong({ action: 'open', url: 'http://' })).status, 400)
  t.equal((await wrong({ action: 'open', url: 'about:blank' }, 'a%20b')).status, 400)
  t.equal((await wrong({ action: 'back' })).status, 404)
  t.equal(
    (await wrong({ action: 'open', url: 'about:blank' }, 'agent-1')).status,
    404,
    'people can only use names for people',
  )
  t.equal((await daemon.fetch('/system/browsers/web-a', { method: 'DELETE' })).status, 404)
  t.same(await daemon.client.call('GET /system/browsers'), { sessions: [] })
  t.notOk(existsSync(freshOf(daemon)))
})

t.test('without a browser on the machine the refusal says how to install one', async t => {
  const before = process.env.SANDBOX_CHROMIUM
  process.env.SANDBOX_CHROMIUM = '/nowhere/chromium'
  t.teardown(() =>
    before === undefined ? delete process.env.SANDBOX_CHROMIUM : (process.env.SANDBOX_CHROMIUM = before),
  )
  const daemon = await daemonWith(t, ['system'])
  t.equal(await findChromium(), undefined)
  const refused = await daemon.fetch('/system/browsers/web-a/page', {
    method: 'POST',
    body: '{"action":"open","url":"about:blank"}',
  })
  t.match(
    [refused.status, await refused.json()],
    exactly(501, { reason: 'missing-program', message: /chromium.*apt-get install chromium/ }),
  )
  t.match(
    (await daemon.client.call('GET /info')).programs.find(({ name }) => name === 'chromium'),
    { name: 'chromium', present: false, install: /chromium/ },
  )
  t.same(await daemon.client.call('GET /system/browsers'), { sessions: [] })
})

t.test('a person opens a browser, views its pages, navigates in them and closes it', withChromium(), async t => {
  const { daemon, site } = await shared(t)
  const { session } = await act(daemon, 'open', { url: site.url })
  t.match(session, {
    name: 'web-a',
    label: 'web-a',
    server: 'web',
    running: true,
    pages: exactly({ id: 'p1', url: `${site.url}/`, active: true }),
  })
  t.match(
    (await daemon.client.call('GET /info')).programs.find(({ name }) => name === 'chromium'),
    { name: 'chromium', present: true },
  )

  await t.test('a capture has the picture and the visible text', async t => {
    const { capture } = await act(daemon, 'capture')
    t.match(capture, {
      pageId: 'p1',
      mime: 'image/webp',
      width: 1280,
      height: 800,
      text: /^Hello\ngo$/,
      truncated: false,
    })
    t.match(Buffer.from(capture!.data, 'base64').subarray(0, 12).toString('latin1'), /^RIFF....WEBP$/s)
  })

  await t.test('a page navigates to another, back, forward and reloads', async t => {
    const at = async (action: BrowserAct['action'], more = {}) =>
      (await act(daemon, action, more)).session.pages[0]?.url
    t.equal(await at('goto', { url: `${site.url}/two` }), `${site.url}/two`)
    t.equal(await at('back'), `${site.url}/`)
    t.equal(await at('back'), 'about:blank')
    t.equal(await at('back'), 'about:blank', 'it does not go back before its first page')
    t.equal(await at('forward'), `${site.url}/`)
    t.equal(await at('forward'), `${site.url}/two`)
    const before = site.heard.filter(line => line === 'GET /two').length
    t.equal(await at('reload'), `${site.url}/two`)
    t.ok(site.heard.filter(line => line === 'GET /two').length > before, 'the server gets another request')
  })

  await t.test('a second page becomes the active one, until another is bound or it is closed', async t => {
    const actives = ({ session: { pages } }: BrowserActed) => pages.map(({ id, active }) => `${id}${active ? '*' : ''}`)
    t.same(actives(await act(daemon, 'open', { url: site.url })), ['p1', 'p2*'])
    t.same(actives(await act(daemon, 'activate', { pageId: 'p1' })), ['p1*', 'p2'])
    t.match((await act(daemon, 'capture', { pageId: 'p2' })).capture, { pageId: 'p2', text: /Hello/ })
    t.same(actives(await act(daemon, 'close')), ['p2*'])
    await t.rejects(act(daemon, 'capture', { pageId: 'p1' }), { reason: 'not-found', message: /p2.*found p1/ })
  })

  await t.test('an unreachable address is refused with a message and leaves the page unchanged', async t => {
    const failed = (url: string, action: 'goto' | 'open' = 'open') => act(daemon, action, { url })
    const closed = createServer().listen(0, '127.0.0.1')
    await once(closed, 'listening')
    const { port } = closed.address() as { port: number }
    closed.close()
    await t.rejects(failed(`http://127.0.0.1:${port}/`), {
      reason: 'dependency',
      message: /nothing is listening there/,
    })
    await t.rejects(failed('http://no-such-name.invalid/'), { reason: 'dependency', message: /no such name/ })
    await t.rejects(failed('https://no-such-name.invalid/'), { reason: 'dependency', message: /no such name/ })
    await t.rejects(failed(`https://127.0.0.1:${site.port}/`), { reason: 'dependency', message: /ERR_SSL|closed/ })
    await t.rejects(failed(`${site.url}/file`), { reason: 'dependency', message: /is a download/ })
    const { session } = await act(daemon, 'goto', { url: `${site.url}/two` })
    t.match(
      session.pages.map(({ id, url }) => [id, url]),
      exactly(exactly('p2', `${site.url}/two`)),
      'no error page is left',
    )
  })

  await t.test('a hanging page is listed, and a capture of it times out', async t => {
    await act(daemon, 'open', { url: `${site.url}/hang` })
    await t.rejects(act(daemon, 'capture'), { reason: 'dependency', message: /did not answer within 10 s/ })
    t.equal((await daemon.client.call('GET /system/browsers')).sessions[0]?.pages.length, 2)
    await act(daemon, 'close')
  })

  await t.test(
    'a closed browser stays in the list with its last pages, and the next use fails as after a crash',
    async t => {
      t.same(await daemon.client.call('DELETE /system/browsers/{name}', { name: 'web-a' }), { ok: true })
      const { sessions } = await daemon.client.call('GET /system/browsers')
      t.match(
        sessions,
        exactly({ name: 'web-a', running: false, finishedAt: Number, pages: exactly({ url: `${site.url}/two` }) }),
      )
      await t.rejects(act(daemon, 'reload'), { reason: 'conflict', message: /not running.*crashed/ })
      await t.rejects(act(daemon, 'goto', { url: site.url }), { reason: 'conflict', message: /not running/ })
      t.same(
        await daemon.client.call('DELETE /system/browsers/{name}', { name: 'web-a' }),
        { ok: true },
        'closing it again succeeds',
      )
      t.same(readdirSync(freshOf(daemon)), [], 'its folder is removed')
      t.same(processesWith(freshOf(daemon)), [])
      const { events } = await daemon.client.call('GET /activity', { type: 'browser.*' })
      t.match(
        events,
        exactly({ type: 'browser.closed', actor: 'owner@sandbox.local', extra: { browser: 'web-a' } }),
        'the activity record has its closing once',
      )
    },
  )
})

t.test('between groups a browser is opened for a conversation, used, and ends with it', withChromium(), async t => {
  const { daemon, site } = await shared(t)
  const call = { name: 'agent-x', conversationId: 'c-1', label: 'looks things up', near: false }
  const opened = await between(daemon, 'browsers.open', call)
  t.match(opened, {
    name: 'agent-x',
    label: 'looks things up',
    conversationId: 'c-1',
    running: true,
    pages: exactly({ url: 'about:blank' }),
  })
  await t.rejects(between(daemon, 'browsers.open', call), { reason: 'conflict', message: /agent-x is running/ })
  await t.rejects(
    between(daemon, 'browsers.page', { name: 'agent-x', action: 'open', url: site.url }),
    { reason: 'unprocessable', message: /loopback address/ },
    'it cannot reach private addresses',
  )
  await t.rejects(between(daemon, 'browsers.page', { name: 'web-none', action: 'open', url: site.url }), {
    reason: 'not-found',
    message: /found web-none/,
  })
  t.same(
    (await between(daemon, 'browsers.list')).sessions.map(({ name }) => name),
    ['agent-x'],
  )

  const limited = {
    caller: { kind: 'session', actor: 'v@example.org', email: 'v@example.org', role: 'viewer', areas: [] },
    signal: new AbortController().signal,
    trusted: true,
  } as const
  t.same(
    await daemon.kernel.calls.answer('GET /system/browsers', {}, limited),
    { sessions: [] },
    'a person limited to areas does not see it',
  )

  await between(daemon, 'browsers.end', { conversationId: 'c-1' })
  t.match((await between(daemon, 'browsers.list')).sessions, exactly({ name: 'agent-x', running: false }))
  const again = await between(daemon, 'browsers.open', call)
  t.match([again.running, again.name], exactly(true, 'agent-x'), 'the name is free again')
  await between(daemon, 'browsers.end', { name: 'agent-x' })
  t.same(site.heard, [])
})

t.test('an agent reads a page by roles and names, and uses its elements', withChromium(), async t => {
  const daemon = await daemonWith(t, ['system'])
  const site = await siteOf(t, {
    '/': `<title>Form</title><form action="/sent"><label>Name <input name="name"></label>
      <label>Size <select name="size"><option>small</option><option>large</option></select></label>
      <label>File <input type="file" id="file"></label><button>Send</button></form>
      <output id="out"></output><script>
      document.querySelector('#file').onchange = async event =>
        (document.querySelector('#out').textContent = 'got ' + (await event.target.files[0].text()))</script>`,
    '/sent': (request, response) =>
      void response
        .writeHead(200, { 'content-type': 'text/html' })
        .end(`<h1>${request.url!.replace(/[<&]/g, ' ')}</h1>`),
  })
  const name = 'agent-form'
  await between(daemon, 'browsers.open', { name, url: site.url })
  const use = (input: object) => between(daemon, 'browsers.use', { name, ...input })
  const { text } = await use({ action: 'read' })
  const refOf = (what: RegExp): string => new RegExp(`${what.source}.*\\[ref=(e\\d+)\\]`).exec(text)?.[1] ?? text
  await use({ action: 'fill', ref: refOf(/textbox "Name/), text: 'ada' })
  await use({ action: 'select', ref: refOf(/combobox "Size/), values: ['large'] })
  const files = [{ name: 'a.txt', data: Buffer.from('a file').toString('base64') }]
  await use({ action: 'upload', ref: refOf(/button "File/), files })
  t.match((await use({ action: 'wait', text: 'got a file' })).text, /got a file/)
  const bare = { action: 'fill', ref: refOf(/textbox "Name/) }
  await t.rejects(use(bare), { reason: 'invalid', message: /fill takes text: expected/ })
  const sent = await use({ action: 'click', ref: refOf(/button "Send"/) })
  t.match(sent, { pageId: 'p1', truncated: false, text: /heading "\/sent\?name=ada size=large"/ })
  t.match(sent.session.pages, exactly({ id: 'p1', active: true }))
  await t.rejects(use({ action: 'click', ref: 'e999' }), {
    reason: 'conflict',
    message: /found e999: read the page again/,
  })
  await t.rejects(use({ action: 'click' }), { reason: 'invalid', message: /click takes ref: expected/ })
  await t.rejects(use({ action: 'press', key: 'Nonsense' }), { reason: 'unprocessable', message: /does not allow it/ })
  await t.rejects(use({ action: 'read', pageId: 'p9' }), { reason: 'not-found', message: /found p9/ })
  await between(daemon, 'browsers.end', { name })
  await t.rejects(use({ action: 'read' }), { reason: 'conflict', message: /is not running/ })
})

t.test('a profile keeps its sign-ins, has one browser at a time, and is visible to few', withChromium(), async t => {
  const daemon = await daemonWith(t, ['system'])
  const site = await siteOf(t, {
    '/': (request, response) =>
      void response
        .writeHead(200, { 'content-type': 'text/html', 'set-cookie': 'who=ada; Max-Age=9999' })
        .end(`<title>Inbox</title>${request.headers.cookie ?? 'nobody'}`),
  })
  const url = `${site.url}/?token=x`
  await between(daemon, 'browsers.open', { name: 'first', profile: 'mail', url })
  await t.rejects(between(daemon, 'browsers.open', { profile: 'mail' }), {
    reason: 'conflict',
    message: /sign-ins of mail/,
  })
  await until(async () => (await between(daemon, 'browsers.list')).sessions[0]?.pages[0]?.title === 'Inbox')
  const { client } = await daemon.token('read')
  t.match(
    (await client.call('GET /system/browsers')).sessions,
    exactly({ server: 'mail', pages: exactly({ title: undefined, url: `${site.url}/` }) }),
  )
  t.match(
    (await daemon.client.call('GET /system/browsers')).sessions,
    exactly({ server: 'mail', pages: exactly({ title: 'Inbox', url }) }),
  )
  await between(daemon, 'browsers.end', { name: 'first' })
  await between(daemon, 'browsers.open', { name: 'second', profile: 'mail', url })
  t.match(await between(daemon, 'browsers.page', { name: 'second', action: 'capture' }), {
    capture: { text: 'who=ada' },
  })
  await between(daemon, 'browsers.open', { name: 'third', url })
  t.match(
    await between(daemon, 'browsers.page', { name: 'third', action: 'capture' }),
    { capture: { text: 'nobody' } },
    'nobody else has them',
  )
})

t.test(
  'at most 20 pages are open, also if many are opened at once, and a closed page does not count',
  withChromium(),
  async t => {
    const daemon = await daemonWith(t, ['system'])
    const site = await siteOf(t, PAGES)
    const open = () => act(daemon, 'open', { url: site.url })
    const pages = async () => (await between(daemon, 'browsers.list')).sessions[0]?.pages ?? []
    await open()
    const tried = await Promise.allSettled(Array.from({ length: 24 }, open))
    t.equal(tried.filter(({ status }) => status === 'fulfilled').length, 19)
    t.equal((await pages()).length, 20)
    await t.rejects(open(), { status: 429, message: /20 pages are open: close one/ })
    await act(daemon, 'close', { pageId: (await pages()).at(-1)!.id })
    await open()
    t.equal((await pages()).length, 20)
  },
)

t.test('pages opened by a page count, and those beyond 20 are closed', withChromium(), async t => {
  const site = await siteOf(t, {
    ...PAGES,
    '/opens': '<title>Opens</title><button onclick="window.last = window.open(\'/two\')">open',
  })
  const browsers = browsersIn(t)
  await browsers.open({ name: 'web-a', url: `${site.url}/opens` })
  const { running } = await browsers.running('web-a')
  const { page } = running.tab('p1')
  /** Browsers open pages only after an action of a person. */
  const clicks = async () => {
    await running.act({ action: 'activate', pageId: 'p1' })
    await page.click('button')
  }
  await clicks()
  await until(() => running.pages.length === 2)
  while (running.pages.length < 19) await running.act({ action: 'open', url: 'about:blank' })
  await clicks()
  await until(() => running.pages.length === 20)
  await t.rejects(running.act({ action: 'open', url: site.url }), { message: /20 pages are open: close one/ })
  await clicks()
  await until(() => page.evaluate('window.last.closed'))
  t.equal(page.context().pages().length, 20)
  t.equal(running.pages.length, 20)
})

t.test('no page reaches the gate of another browser or of its own', withChromium(), async t => {
  const daemon = await daemonWith(t, ['system'])
  const gates = new Set<string>()
  for (const name of ['one', 'two']) {
    await between(daemon, 'browsers.open', { name, url: 'about:blank' })
    const lines = processesWith(daemon.data).map(pid => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
    for (const line of lines)
      for (const [, port] of line.matchAll(/--proxy-server=\S*?127\.0\.0\.1:(\d+)/g)) gates.add(port!)
  }
  t.equal(gates.size, 2)
  for (const name of ['one', 'two']) {
    for (const port of gates) {
      await t.rejects(
        between(daemon, 'browsers.page', { name, action: 'goto', url: `http://127.0.0.1:${port}/` }),
        { reason: 'unprocessable', message: /is not asked/ },
        `${name} ${port}`,
      )
    }
  }
})

t.test('a browser that ended is kept in the list for an hour', withChromium(), async t => {
  const clock = { now: 5_000_000 }
  const changed: string[] = []
  const browsers = browsersIn(t, { changed: name => changed.push(name), now: () => clock.now })
  await browsers.open({ name: 'web-a' })
  await browsers.end('web-a')
  clock.now += 60 * 60_000
  t.match(await browsers.list(), exactly({ name: 'web-a', running: false, finishedAt: 5_000_000 }))
  clock.now += 1
  t.same(await browsers.list(), [])
  await t.rejects(browsers.end('web-a'), { reason: 'not-found', message: /found web-a/ })
  t.ok(changed.length >= 2 && changed.every(name => name === 'web-a'), 'watchers are notified')
})

t.test('a change of the browsers is published to watchers of the sandbox', withChromium(), async t => {
  const daemon = await daemonWith(t, ['system'])
  const over = new AbortController()
  const events = await daemon.client.call('GET /events', {}, { signal: over.signal })
  const told = (async () => {
    for await (const event of events)
      if (event.kind === 'runtimeChanged' && event.domains.includes('browsers')) return event.keys
    return undefined
  })()
  await act(daemon, 'open', { url: 'about:blank' })
  t.same(await told, ['web-a'])
  over.abort()
})

t.test('browsers work the same if the group runs in its own process', withChromium(), async t => {
  const daemon = await daemonWith(t, ['system'], { apart: ['system'] })
  const site = await siteOf(t, PAGES)
  await act(daemon, 'open', { url: site.url })
  t.match(await act(daemon, 'capture'), { capture: { text: /Hello/ } })
  await t.rejects(act(daemon, 'goto', { url: `${daemon.url}/health` }), {
    reason: 'unprocessable',
    message: /this sandbox itself/,
  })
  const { ticket } = await daemon.client.call('POST /system/ws-ticket', { for: 'browser', name: 'web-a' })
  const eye = await talkTo(t, `${daemon.url}/system/browser-view?session=web-a&ticket=${ticket}`)
  await eye.until(({ type }) => type === 'frame')
  eye.ws.close()
  await eye.closed
  await daemon.stop()
  t.same(processesWith(freshOf(daemon)), [])
})
