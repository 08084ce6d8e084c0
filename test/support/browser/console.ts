import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import {
  chromium,
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type CDPSession,
  type Page,
  type ViewportSize,
} from 'playwright-core'
import type { Test } from 'tap'
import { findChromium } from '../../../plugins/system/browsers/chromium.js'
import { askSocket } from '../../../sdk/cli/daemon/socket.js'
import type { Support } from '../daemon.js'
import { endShared, isShared } from '../shared-ends.js'
import { HEADLESS } from './browser.js'

/** The groups whose calls the console shows. */
export const CONSOLE_GROUPS = ['console', 'system', 'settings', 'agent', 'agents', 'areas', 'activity', 'logs']

/** A name of a daemon on a private network: browsers do not trust it as they trust loopback addresses. */
export const PRIVATE_HOST = 'sandbox.private.test'

/** A browser of its own, which ends with the test; for it `PRIVATE_HOST` is the daemon at the port of `url`. */
export const ownBrowser = async (t: Pick<Test, 'teardown'>, url?: string): Promise<Browser> =>
  endsWith(t, await start(url))

/**
 * A browser of its own as people have it: with notifications, and with a process for each sandboxed frame. The one
 * without windows has neither.
 */
export const fullBrowser = async (t: Pick<Test, 'teardown'>): Promise<Browser> =>
  endsWith(t, await start(undefined, true))

/** A browser of its own that shows scroll bars, as people with a mouse have them. */
export const browserWithBars = async (t: Pick<Test, 'teardown'>): Promise<Browser> =>
  endsWith(t, await start(undefined, undefined, ['--hide-scrollbars']))

const endsWith = (t: Pick<Test, 'teardown'>, browser: Browser): Browser => {
  t.teardown(() => browser.close())
  return browser
}

const start = async (url?: string, full?: true, ignoreDefaultArgs: string[] = []): Promise<Browser> =>
  chromium.launch({
    executablePath: !full && existsSync(HEADLESS) ? HEADLESS : (await findChromium())!,
    args: url === undefined ? [] : [`--host-resolver-rules=MAP ${PRIVATE_HOST} ${new URL(url).host}`],
    chromiumSandbox: process.getuid?.() !== 0,
    ignoreDefaultArgs,
  })

/** The browser of this process, which its files share. */
let shared: Promise<Browser> | undefined

/** A real browser, which the files of a process share: what a test opened is closed at its end. */
export const launchBrowser = async (t: Pick<Test, 'teardown'>): Promise<Browser> => {
  if (!shared) {
    const started = start()
    shared = started
    endShared(t, async () => {
      shared = undefined
      await (await started).close()
    })
  }
  const browser = await shared
  if (isShared()) t.teardown(() => leaveBrowser(browser))
  return browser
}

const WIDE = { width: 1280, height: 720 }

/** A page of the console, and its errors. */
export interface ConsoleTab {
  readonly page: Page
  /** Errors, policy violations, and requests to other origins. */
  readonly faults: string[]
}

/** A tab that serves several tests, one after the other. */
interface KeptTab extends ConsoleTab {
  /** The daemon whose console it shows. */
  url: string
}

/** The tabs of a browser that outlast a test, because a new browser context costs more than most journeys. */
interface KeptTabs {
  owner?: KeptTab
  /** Signed out, nothing is stored in them. */
  readonly free: KeptTab[]
  /** In use by a test that gives them back with `closeTab`. */
  readonly lent: Map<Page, KeptTab>
}

const tabs = new WeakMap<Browser, KeptTabs>()

const tabsOf = (browser: Browser): KeptTabs => {
  const kept = tabs.get(browser) ?? { free: [], lent: new Map() }
  tabs.set(browser, kept)
  return kept
}

const newTab = async (browser: Browser, url: string, options: BrowserContextOptions): Promise<KeptTab> =>
  tabIn(await browser.newContext({ reducedMotion: 'reduce', ...options }), url)

const tabIn = async (context: BrowserContext, url: string): Promise<KeptTab> => {
  const page = await context.newPage()
  const tab: KeptTab = { page, faults: [], url }
  page.on(
    'console',
    message => message.type() === 'error' && tab.faults.push(`${message.text()} ${message.location().url}`),
  )
  page.on('pageerror', error => tab.faults.push(error.message))
  page.on('request', request => {
    const isOwn = request.url().startsWith(`${tab.url}/`) || request.url().startsWith('blob:')
    if (!isOwn) tab.faults.push(request.url())
  })
  page.setDefaultTimeout(20_000)
  return tab
}

/** A tab of a browser in which nobody is signed in; with options, or for scripts of a test, in a context of its own. */
export const openTab = async (
  browser: Browser,
  { url }: Pick<Support, 'url'>,
  options?: BrowserContextOptions,
): Promise<ConsoleTab> => {
  if (options) return newTab(browser, url, options)
  const { free, lent } = tabsOf(browser)
  const tab = free.pop() ?? (await newTab(browser, url, {}))
  tab.url = url
  lent.set(tab.page, tab)
  return tab
}

/** One more tab of the same person in the same browser. */
export const tabBeside = async ({ page }: ConsoleTab, { url }: Pick<Support, 'url'>): Promise<ConsoleTab> => {
  const tab = await tabIn(page.context(), url)
  await tab.page.goto(url)
  await tab.page.locator('[data-ready=yes]').waitFor({ state: 'attached' })
  return tab
}

/** Closes a tab that `openTab` opened, with what it stored. */
export const closeTab = async (browser: Browser, { page, faults }: ConsoleTab): Promise<void> => {
  const { free, lent } = tabsOf(browser)
  const tab = lent.get(page)
  lent.delete(page)
  if (!tab || page.isClosed()) return page.context().close()
  await page.unrouteAll()
  await page.goto('about:blank')
  const session = await page.context().newCDPSession(page)
  await session.send('Storage.clearDataForOrigin', { origin: tab.url, storageTypes: 'all' })
  await session.detach()
  await page.setViewportSize(WIDE)
  await page.emulateMedia({ colorScheme: null })
  faults.length = 0
  free.push(tab)
}

/** Closes what a file left open in the browser; the tabs that serve the next one show nothing. */
const leaveBrowser = async (browser: Browser): Promise<void> => {
  const { owner, free, lent } = tabsOf(browser)
  for (const tab of [...lent.values()]) await closeTab(browser, tab)
  const kept = new Set([owner, ...free].map(tab => tab?.page.context()))
  await Promise.all(browser.contexts().map(context => !kept.has(context) && context.close()))
  if (!owner || owner.page.isClosed()) return
  owner.url = ''
  await owner.page.goto('about:blank')
}

/** The link with which the owner signs in. */
export const loginLink = async ({ socket }: Pick<Support, 'socket'>): Promise<string> =>
  ((await askSocket(socket!, { do: 'login' })) as { url: string }).url

/** The login socket of a daemon in a process of its own. */
export const findDaemonSocket = (data: string): string =>
  (JSON.parse(readFileSync(join(data, 'daemon.json'), 'utf8')) as { socket: string }).socket

/** A new tab in which the owner is signed in, in a browser context of its own: a second browser of the owner. */
export const ownerBrowser = async (
  browser: Browser,
  daemon: Support,
  place = '',
  options?: BrowserContextOptions,
): Promise<ConsoleTab> => {
  const tab = await openTab(browser, daemon, options)
  await tab.page.goto(await loginLink(daemon))
  await tab.page.locator('[data-ready=yes]').waitFor()
  if (place) await goTo(tab.page, place)
  return tab
}

/**
 * The owner's tab, at an address of the console.
 *
 * The journeys of a process share it: it comes without what the one before left, but for what the page keeps in memory.
 */
export const ownerTab = async (
  browser: Browser,
  daemon: Support,
  place = '#/fleet',
  viewport: ViewportSize = WIDE,
): Promise<ConsoleTab> => {
  const kept = tabsOf(browser)
  if (!kept.owner || kept.owner.page.isClosed()) kept.owner = await newTab(browser, '', {})
  const { page, faults } = kept.owner
  await page.unrouteAll()
  await page.setViewportSize(viewport)
  await page.emulateMedia({ colorScheme: null })
  if (kept.owner.url === daemon.url) await goTo(page, '#/me')
  else {
    kept.owner.url = daemon.url
    await page.goto(await loginLink(daemon))
    await page.locator('[data-ready=yes]').waitFor()
  }
  await goTo(page, place)
  faults.length = 0
  return { page, faults }
}

/** Goes to an address of the console, and waits until the page before is gone. */
export const goTo = async (page: Page, place: string): Promise<void> => {
  await page.evaluate(`new Promise(resolve => {
    location.hash = ${JSON.stringify(place)}
    requestAnimationFrame(() => requestAnimationFrame(resolve))
  })`)
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** A theme changes only colours, so that the rules about anything else are checked in one. */
const RULES = {
  light: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
  dark: ['color-contrast', 'link-in-text-block'],
} as const

/** The elements of a page and what the rules read of them, but for its texts. */
const SHAPE = `[...document.querySelectorAll('*')].map(one => one.tagName
  + [...one.attributes].map(({ name, value }) => name + (/^(?:class|role|type|tabindex)$/.test(name) ? value : '')))
  .concat(innerWidth, document.title === '').join()`

/** The shapes of pages that had no barriers: each is checked once in a file. */
const passed = new Set<string>()

/** A session for each page: an isolated world is that of its session, and keeps axe until the document changes. */
const sessions = new WeakMap<Page, CDPSession>()

const axeFindings = async (page: Page): Promise<string[]> => {
  const found: string[] = []
  // The page's content security policy blocks scripts of a test; an isolated world allows them.
  const session = sessions.get(page) ?? (await page.context().newCDPSession(page))
  sessions.set(page, session)
  const { frameTree } = await session.send('Page.getFrameTree')
  const { executionContextId } = await session.send('Page.createIsolatedWorld', {
    ...{ frameId: frameTree.frame.id, worldName: 'axe' },
  })
  const evaluated = async (expression: string): Promise<unknown> => {
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
      ...{ contextId: executionContextId, awaitPromise: true, returnByValue: true, expression },
    })
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
    return result.value
  }
  if (await evaluated('typeof axe === "undefined"')) await evaluated(`${axe}; undefined`)
  for (const scheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: scheme })
    const options = { runOnly: RULES[scheme], resultTypes: ['violations'], iframes: false, preload: false }
    const violations = await evaluated(`axe.run(document, ${JSON.stringify(options)})
      .then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ' ' + html)))`)
    found.push(...(violations as string[]).map(one => `${scheme}: ${one}`))
  }
  return found
}

/** What breaks WCAG 2.2 A and AA on the page, in both themes, and whether it scrolls sideways at 320 px. */
export const barriersOf = async (page: Page): Promise<string[]> => {
  const shape = String(await page.evaluate(SHAPE))
  const found = passed.has(shape) ? [] : await axeFindings(page)
  if (found.length === 0) passed.add(shape)
  const size = page.viewportSize()!
  await page.setViewportSize({ width: 320, height: size.height })
  if (await page.evaluate('document.documentElement.scrollWidth > innerWidth')) found.push('scrolls sideways at 320 px')
  await page.setViewportSize(size)
  return found
}

/**
 * Ends a journey: the page has no barriers, and there was no error, no policy violation and no request to another
 * origin, but for `expected` ones.
 */
export const endJourney = async (
  t: Pick<Test, 'same'>,
  { page, faults }: ConsoleTab,
  expected?: RegExp,
): Promise<void> => {
  t.same(await barriersOf(page), [], 'no barriers in either theme, and nothing scrolls sideways at 320 px')
  const others = faults.filter(fault => !expected?.test(fault))
  t.same(others, [], 'no error, no policy violation, and no request to another origin')
}

/** A tab in which another person is signed in, with a role and where asked limited to areas. */
export const guestTab = async (
  browser: Browser,
  daemon: Support,
  grant: { readonly role: 'viewer' | 'collaborator' | 'maintainer'; readonly areas?: string[] },
  place: string,
): Promise<ConsoleTab> => {
  const { invitation } = await daemon.client.call('POST /members', grant)
  const tab = await openTab(browser, daemon)
  await tab.page.goto(invitation!.url)
  await tab.page.getByLabel('Your name').fill(`A ${grant.role}`)
  await tab.page.getByRole('button', { name: 'Accept the invitation' }).click()
  await tab.page.locator('[data-ready=yes]').waitFor()
  await goTo(tab.page, place)
  return tab
}
