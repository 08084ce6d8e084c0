import t from 'tap'
import { between, until, withChromium } from '../../../support/browser/browser.js'
import { CONSOLE_GROUPS, endJourney, fullBrowser, goTo, loginLink, openTab } from '../../../support/browser/console.js'
import { daemonWith } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { decryptPush, newSubscription, pushService } from '../../../support/servers/push-service.js'

/** A subscription in place of one at the vendor's service, which a browser without a window does not reach. */
const standIn = (endpoint: string, p256dh: string, auth: string): string => `{
  const plain = text => atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  const bytes = text => Uint8Array.from(plain(text), one => one.charCodeAt(0)).buffer
  const keys = { p256dh: bytes('${p256dh}'), auth: bytes('${auth}') }
  let subscription = null
  PushManager.prototype.getSubscription = async () => subscription
  PushManager.prototype.subscribe = async ({ userVisibleOnly, applicationServerKey }) => {
    if (!userVisibleOnly) throw new TypeError('every message must be shown')
    return (subscription = {
      endpoint: '${endpoint}',
      options: { applicationServerKey: bytes(applicationServerKey) },
      getKey: name => keys[name],
      unsubscribe: async () => ((subscription = null), true),
    })
  }
}`

t.test('notifications of the console', withChromium(), async t => {
  const service = await pushService(t)
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'push'], { deployment: { push: { privateNetworks: true } } })
  const browser = await fullBrowser(t)
  const endpoint = `${service.url}/send/tab`
  const subscription = newSubscription(endpoint)
  const { p256dh, auth } = subscription.channel.keys
  const tab = await openTab(browser, daemon, { permissions: ['notifications'] })
  t.teardown(() => tab.page.context().close())
  const { page } = tab
  await page.addInitScript(standIn(endpoint, p256dh, auth))
  await page.goto(await loginLink(daemon))
  await page.locator('[data-ready=yes]').waitFor()
  await goTo(page, '#/me')
  const choice = page.getByLabel(/^Notify me/)
  const config = () => daemon.client.call('GET /push/config', { id: endpoint })

  await t.test('a person registers this browser, tests it, and is shown what comes', async t => {
    await choice.click()
    await page.getByText('They come also while no page of the sandbox is open.').waitFor()
    t.match(await config(), { subscribed: true })
    await page.getByRole('button', { name: 'Send a test' }).click()
    await page.getByText('One device took it.').waitFor()
    const data = String(decryptPush(service.requests[0]!.bytes, subscription))
    const shown = async (message: string) => {
      const session = await page.context().newCDPSession(page)
      const registered = new Promise<string>(resolve =>
        session.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
          const [own] = registrations
          if (own) resolve(own.registrationId)
        }),
      )
      await session.send('ServiceWorker.enable')
      const registrationId = await registered
      await session.send('ServiceWorker.deliverPushMessage', { origin: daemon.url, registrationId, data: message })
      await session.detach()
    }
    const notifications = () =>
      page.evaluate(`navigator.serviceWorker.getRegistration('/console/')
        .then(one => one.getNotifications())
        .then(all => all.map(({ title, body, tag, data }) => ({ title, body, tag, url: data.url })))`) as Promise<
        object[]
      >
    await shown(data)
    await until(async () => (await notifications()).length === 1)
    t.match(await notifications(), exactly({ title: 'A test of your sandbox', tag: 'test', url: '/' }))
    const cards = ['First?', 'Second?'].map(body => ({
      ...{ title: 'An agent waits for you', body, url: '/?conversation=asks', tag: 'awaiting-asks' },
    }))
    for (const card of cards) await shown(JSON.stringify(card))
    await until(async () => JSON.stringify(await notifications()).includes('Second?'))
    t.equal((await notifications()).length, 2, 'the newer one replaces the one with its tag')
  })

  await t.test('a notification that is opened leads to its conversation in the tab that is open', async t => {
    const [worker] = page.context().serviceWorkers()
    await worker!.evaluate(`registration.getNotifications({ tag: 'awaiting-asks' }).then(([notification]) => {
      dispatchEvent(new NotificationEvent('notificationclick', { notification }))
    })`)
    await page.waitForURL(/#\/c\/asks$/)
    await page.goto(`${daemon.url}/?approval=a-1`)
    await page.waitForURL(/#\/inbox$/)
    t.pass()
  })

  await t.test('the daemon knows whether a person looks at the page', async t => {
    const idle = async () => (await between(daemon, 'members.present')).present.map(one => one.idle)
    await until(async () => (await idle()).length === 1)
    t.same(await idle(), [false])
    const shows = (state: string) =>
      page.evaluate(`Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true })
        document.dispatchEvent(new Event('visibilitychange'))`)
    await shows('hidden')
    await until(async () => (await idle())[0] === true)
    await shows('visible')
    await until(async () => (await idle())[0] === false)
  })

  await t.test('what is turned off, and who signs out, gets nothing more', async t => {
    await goTo(page, '#/me')
    await choice.click()
    await choice.click()
    await page.getByRole('button', { name: 'Send a test' }).waitFor()
    t.match(await config(), { subscribed: true })
    await choice.click()
    await until(async () => !(await config()).subscribed)
    await choice.click()
    await page.getByRole('button', { name: 'Send a test' }).waitFor()
    await endJourney(t, tab)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are signed out.').waitFor()
    t.match(await config(), { subscribed: false })
  })
})
