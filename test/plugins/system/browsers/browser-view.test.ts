import t, { type Test } from 'tap'
import type { ViewClientFrame, ViewMenu } from '../../../../plugins/system/contract.js'
import { between, siteOf, withChromium, withoutWindows } from '../../../support/browser/browser.js'
import { daemonWith, type Support } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { talkTo, turnedAway, type Talk } from '../../../support/sockets/client.js'

withoutWindows(t)

const PAGES = {
  '/': `<!doctype html><title>Home</title>
    <style>
      body { margin: 0 }
      body > * { position: absolute; left: 0; width: 200px; height: 30px }
    </style>
    <body><a href="/two" style="top:0;height:100px;background:#eee">go</a>
    <input id="field" style="top:200px">
    <select id="choice" style="top:300px"><option>one<option disabled>two<option>three</select>
    <p id="said" style="left:300px;top:200px"></p>
    <script>
      const say = () => { document.getElementById('said').textContent = [field.value, choice.value, keys].join('/') }
      let keys = ''
      field.oninput = say
      choice.onchange = say
      onkeydown = event => { keys += (event.ctrlKey ? '^' : '') + event.key; say() }
      ondblclick = () => { keys += 'double'; say() }
      onwheel = event => { keys += 'wheel' + Math.sign(event.deltaY); say() }
    </script>`,
  '/two': '<title>Two</title><h1>the second page</h1>',
  '/moves':
    '<title>Moves</title><body><script>let n = 0; '
    + 'setInterval(() => { document.body.style.background = `hsl(${n++ * 7},80%,50%)` }, 20)</script>',
  '/hang': '<title>Hang</title><script>onmousedown = () => { for (;;); }</script>',
}

const begun = async (t: Test, path = '/') => {
  const daemon = await daemonWith(t, ['system', 'activity'])
  const site = await siteOf(t, PAGES)
  await daemon.client.call('POST /system/browsers/{name}/page', { name: 'web-a', action: 'open', url: site.url + path })
  return { daemon, site }
}

const ticketOf = async ({ client }: Support, name = 'web-a'): Promise<string> =>
  (await client.call('POST /system/ws-ticket', { for: 'browser', name })).ticket

const addressOf = async (daemon: Support, name = 'web-a'): Promise<string> =>
  `${daemon.url}/system/browser-view?session=${name}&ticket=${await ticketOf(daemon, name)}`

/** A viewer that sends and receives the frames of the contract. */
const looksAt = async (t: Test, daemon: Support, name?: string) => {
  const talk = await talkTo(t, await addressOf(daemon, name))
  const say = (...frames: ViewClientFrame[]) => frames.forEach(frame => talk.say(frame))
  const click = (x: number, y: number) =>
    say(
      { type: 'mouse', action: 'move', x, y },
      { type: 'mouse', action: 'down', x, y },
      { type: 'mouse', action: 'up', x, y },
    )
  return {
    ...talk,
    say,
    click,
    next: <T>(type: string) => talk.until(frame => frame.type === type) as Promise<unknown> as Promise<T>,
  }
}

const textOf = async (daemon: Support, pageId?: string): Promise<string> =>
  (
    await daemon.client.call('POST /system/browsers/{name}/page', {
      name: 'web-a',
      action: 'capture',
      ...(pageId && { pageId }),
    })
  ).capture?.text ?? ''

const urlsOf = async (daemon: Support): Promise<string[]> =>
  (await daemon.client.call('GET /system/browsers')).sessions.flatMap(({ pages }) => pages.map(({ url }) => url))

/** Polls a condition, because the effect of a click is not announced. */
const until = async (holds: () => Promise<boolean>): Promise<void> => {
  while (!(await holds())) await new Promise(resolve => setTimeout(resolve, 10))
}

t.test('a view needs a ticket, and a browser that exists and runs', withChromium(), async t => {
  const daemon = await daemonWith(t, ['system'])
  const at = (query: string) => turnedAway(t, `${daemon.url}/system/browser-view?${query}`)
  t.match(await at('session=web-a'), { status: 401 })
  t.match(await at('session=web-a&ticket=x'), { status: 401 })
  t.match(await turnedAway(t, await addressOf(daemon)), { status: 404, body: { message: /found web-a/ } })
  t.match(
    await at(`session=web-b&ticket=${await ticketOf(daemon)}`),
    { status: 401 },
    'a ticket is valid for its browser',
  )
  await between(daemon, 'browsers.open', { name: 'web-a' })
  const address = await addressOf(daemon)
  await talkTo(t, address)
  t.match(await turnedAway(t, address), { status: 401 }, 'it is valid once')
  await between(daemon, 'browsers.end', { name: 'web-a' })
  t.match(await turnedAway(t, await addressOf(daemon)), { status: 409, body: { message: /not running/ } })
})

t.test(
  'a viewer gets the page, a sharp picture when it stops changing, and the result of a click',
  withChromium(),
  async t => {
    const { daemon, site } = await begun(t)
    const eye = await looksAt(t, daemon)
    t.match(await eye.next('ready'), { width: 1280, height: 800 })
    const [moving, still] = [
      await eye.next<{ format: string; data: string }>('frame'),
      await eye.next<{ format: string; data: string }>('frame'),
    ]
    t.match([moving.format, still.format], exactly('jpeg', 'webp'))
    t.match(Buffer.from(moving.data, 'base64').subarray(0, 3), Buffer.from([0xff, 0xd8, 0xff]))
    t.equal(Buffer.from(still.data, 'base64').subarray(8, 12).toString(), 'WEBP')
    eye.click(50, 50)
    await until(async () => (await urlsOf(daemon))[0] === `${site.url}/two`)
    t.match(await eye.next('frame'), { format: 'jpeg' })
    eye.say({ type: 'ping' })
    await eye.next('pong')
    const { events } = await daemon.client.call('GET /activity', { type: 'browser.*' })
    t.match(
      events.map(({ type, actor, extra }) => [type, actor, extra]),
      exactly(
        exactly('browser.driven', 'owner@sandbox.local', { browser: 'web-a' }),
        exactly('browser.attached', 'owner@sandbox.local', { browser: 'web-a' }),
      ),
      'the activity record has once that a person views a browser, and that they act in it',
    )
    t.notMatch(JSON.stringify(events), /ticket/)
    eye.ws.close()
    await eye.closed
    t.equal((await daemon.client.call('GET /system/browsers')).sessions[0]?.running, true, 'the browser keeps running')
  },
)

t.test('mouse, keys, text, selection and drop-downs work on the page', withChromium(), async t => {
  const { daemon } = await begun(t)
  const eye = await looksAt(t, daemon)
  const says = (text: string) => until(async () => (await textOf(daemon)).includes(text))

  eye.click(100, 215)
  eye.say({ type: 'text', text: 'grüße 🙂' }, { type: 'key', key: 'a', ctrl: true }, { type: 'selection' })
  t.match(await eye.next('selection'), { text: 'grüße 🙂' })
  eye.say({ type: 'key', key: 'B', shift: true }, { type: 'key', key: 'é' })
  await says('Bé/one/^Control^aShiftB')

  eye.click(100, 315)
  const { menu } = await eye.next<{ menu: ViewMenu }>('select')
  t.match(menu, {
    selected: 0,
    rect: { x: 0, y: 300, width: 200, height: 30 },
    options: exactly({ label: 'one', disabled: false }, { label: 'two', disabled: true }, { label: 'three' }),
  })
  eye.say({ type: 'selectOption', index: 1 })
  t.match(
    [await eye.next('select'), await eye.next('error')],
    exactly({ menu: null }, { message: /can be chosen, found 1/ }),
  )
  eye.click(100, 315)
  await eye.next('select')
  eye.say({ type: 'selectOption', index: 2 })
  await says('/three/')
  eye.say({ type: 'selectOption', index: 0 })
  t.match(await eye.next('error'), { message: /click one first/ })

  eye.say({ type: 'mouse', action: 'wheel', x: 600, y: 500, deltaY: 100 })
  await says('wheel1')
  eye.click(600, 500)
  eye.click(600, 500)
  await says('double')
  eye.say({ type: 'key', key: 'NoSuchKey' })
  t.match(await eye.next('error'), { message: /NoSuchKey/ })
  eye.say({ type: 'mouse', action: 'down', x: -1e300, y: 1e300, button: 4 })
  eye.say({ type: 'ping' })
  await eye.next('pong')
})

t.test(
  'a view follows the active page until it is bound to one, and reports when that page is closed',
  withChromium(),
  async t => {
    const { daemon, site } = await begun(t)
    const act = (action: 'open' | 'close' | 'activate', more: object) =>
      daemon.client.call('POST /system/browsers/{name}/page', { name: 'web-a', action, ...more })
    const eye = await looksAt(t, daemon)
    const selected = async () => {
      eye.say({ type: 'key', key: 'a', ctrl: true }, { type: 'selection' })
      return (await eye.next<{ text: string }>('selection')).text.trim()
    }
    await eye.next('frame')
    await act('open', { url: `${site.url}/two` })
    await until(async () => (await selected()) === 'the second page')
    eye.say({ type: 'bind', pageId: 'p1' })
    t.match(await selected(), /go/)
    await act('activate', { pageId: 'p2' })
    t.match(await selected(), /go/, 'a bound view stays')
    eye.say({ type: 'bind', pageId: 'p9' })
    t.match(await eye.next('error'), { message: /p1, p2.*found p9/ })
    await act('close', { pageId: 'p1' })
    t.match(await eye.next('gone'), { pageId: 'p1' })
    t.equal(await selected(), 'the second page')
    await act('close', { pageId: 'p2' })
    t.match(await eye.next('gone'), { pageId: 'p2' })
    eye.say({ type: 'text', text: 'x' })
    t.match(await eye.next('error'), { message: /no page is open/ })
    await act('open', { url: `${site.url}/two` })
    await eye.next('frame')
  },
)

t.test(
  'a slow reader gets fewer pictures, a paused one none, and a hanging page stops no view',
  withChromium(),
  async t => {
    const { daemon, site } = await begun(t, '/moves')
    const eye = await looksAt(t, daemon)
    const other = await looksAt(t, daemon)
    await other.next('frame')
    await eye.next('frame')
    eye.ws.pause()
    for (let seen = 0; seen < 40; seen++) await other.next('frame')
    const before = eye.seen.length
    eye.ws.resume()
    await eye.next('frame')
    other.say({ type: 'pause' }, { type: 'selection' })
    await other.next('selection')
    const paused = other.seen.filter(({ type }) => type === 'frame').length
    for (let seen = 0; seen < 10; seen++) await eye.next('frame')
    t.ok(other.seen.filter(({ type }) => type === 'frame').length <= paused + 1, 'none comes while it is paused')
    t.ok(eye.seen.length >= before)
    other.say({ type: 'resume' })
    await other.next('frame')

    await daemon.client.call('POST /system/browsers/{name}/page', {
      name: 'web-a',
      action: 'open',
      url: `${site.url}/hang`,
    })
    eye.say({ type: 'bind', pageId: 'p2' })
    eye.click(10, 10)
    eye.say({ type: 'ping' })
    await eye.next('pong')
    t.match(await eye.next('error'), { message: /did not answer/ })
  },
)

t.test('eight viewers may watch a browser, and all are notified when it ends', withChromium(), async t => {
  const { daemon } = await begun(t, '/two')
  const eyes: Talk[] = []
  for (let n = 0; n < 8; n++) eyes.push(await looksAt(t, daemon))
  t.match(await turnedAway(t, await addressOf(daemon)), { status: 429, body: { message: /8 viewers are connected/ } })
  eyes[0]!.ws.terminate()
  const again = async (): Promise<Talk> => {
    try {
      return await talkTo(t, await addressOf(daemon))
    } catch {
      return again()
    }
  }
  eyes[0] = await again()
  await daemon.client.call('DELETE /system/browsers/{name}', { name: 'web-a' })
  for (const eye of eyes) {
    t.match(await eye.until(({ type }) => type === 'error'), { message: /not running/ })
    t.equal((await eye.closed).code, 1000)
  }
})
