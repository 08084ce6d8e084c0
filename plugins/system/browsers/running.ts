import { rm } from 'node:fs/promises'
import type { BrowserContext, CDPSession, Page, Request } from 'playwright-core'
import { Refusal, refuse, ignored } from '../../../sdk/index.js'
import type { NetworkReach } from '../../../sdk/node/network/policy.js'
import type { BrowserAct, BrowserCapture, BrowserPage } from './contract.js'
import { type Chromium, startChromium, type ChromiumDeps } from './chromium.js'
import { addressOf, Gate } from './gate.js'
import { NO_LISTS } from './menu.js'
import { answered, settled, Tab } from './tab.js'

/** How a browser is started. */
export interface Start {
  readonly deps: ChromiumDeps
  /** Its folder of the data folder. */
  readonly folder: string
  /** It has no sign-ins to keep: the folder is removed when it ends. */
  readonly fresh: boolean
  /** The addresses that its pages may reach; called at every connection. */
  readonly reach: () => Promise<NetworkReach>
  /** The port of the proxy of an exit, through which all of its pages are asked. */
  readonly exitPort?: number
}

const NAVIGATION_MS = 15_000
/** Limits a page that opens others without end. */
const MOST_PAGES = 20

const MOST_WATCHERS = 8

/** One running Chromium, its gate to the network, and its pages. */
export class RunningBrowser {
  /** Resolves when it has ended and its temporary files are removed. */
  readonly ended: Promise<void>
  readonly #chromium: Chromium
  readonly #gate: Gate
  readonly #tabs = new Map<string, Tab>()
  readonly #added = new WeakMap<Page, Promise<Tab>>()
  /** Pages that are not in the list yet. */
  #opening = 0
  readonly #listeners = new Set<() => void>()
  #minted = 0
  #watchers = 0
  #ending = false
  #session: CDPSession | undefined
  #active: string | undefined
  #last: BrowserPage[] = []

  private constructor(chromium: Chromium, gate: Gate, { folder, fresh }: Start) {
    this.#chromium = chromium
    this.#gate = gate
    this.ended = chromium.ended.then(async () => {
      await gate.close()
      if (fresh) await rm(folder, { recursive: true, force: true, maxRetries: 5 })
      this.#changed()
    })
  }

  static async start(start: Start): Promise<RunningBrowser> {
    const gate = await Gate.open(start.reach, start.exitPort)
    try {
      const chromium = await startChromium(start.deps, start.folder, gate.port)
      const running = new RunningBrowser(chromium, gate, start)
      await running.#begin().catch(async error => {
        await running.end()
        throw error
      })
      return running
    } catch (error) {
      await gate.close()
      if (start.fresh) await rm(start.folder, { recursive: true, force: true, maxRetries: 5 })
      throw error
    }
  }

  /** The port of its gate: a listener of the daemon, which pages cannot connect to. */
  get port(): number {
    return this.#gate.port
  }

  /** Whether it can be used; when it ends its pages close first, and the last list is kept. */
  get alive(): boolean {
    return !this.#ending && this.#chromium.browser.isConnected()
  }

  /** Its pages; after its end, the last ones. */
  get pages(): BrowserPage[] {
    return this.#last
  }

  /** The page named, or the active one. */
  tab(pageId = this.#active): Tab {
    const tab = pageId === undefined ? undefined : this.#tabs.get(pageId)
    const open = [...this.#tabs.keys()].join(', ') || 'none'
    return (
      tab
      ?? refuse(
        'not-found',
        pageId === undefined
          ? 'no page is open: open one'
          : `expected one of the open pages (${open}), found ${pageId}`,
      )
    )
  }

  /** The page of an id, if it is open. */
  find(pageId: string): Tab | undefined {
    return this.#tabs.get(pageId)
  }

  /** The page that is active, if any is open. */
  get active(): Tab | undefined {
    return this.#active === undefined ? undefined : this.#tabs.get(this.#active)
  }

  /** Reserves a place for a viewer; returns how to release it. */
  watch(): () => void {
    if (this.#watchers >= MOST_WATCHERS)
      refuse('too-many', `${MOST_WATCHERS} viewers are connected to this browser: close one`, { retryAfter: 30 })
    this.#watchers += 1
    let here = true
    return () => {
      if (here) this.#watchers -= 1
      here = false
    }
  }

  /** Subscribes to changes of its pages and to its end; returns how to unsubscribe. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  async end(): Promise<void> {
    this.#ending = true
    await this.#chromium.end()
    await this.ended
  }

  /** Performs one action on one page. */
  async act({ action, pageId, url }: Omit<BrowserAct, 'name'>): Promise<BrowserCapture | undefined> {
    const to = () =>
      url ?? refuse('invalid', `${action} needs url, found none`, { errors: [{ path: 'url', expected: 'an address' }] })
    switch (action) {
      case 'open':
        return void (await this.#open(to()))
      case 'capture':
        return this.tab(pageId).capture()
      case 'close':
        return this.#close(this.tab(pageId))
      case 'activate':
        return void (await this.#activate(this.tab(pageId)))
      case 'goto':
        return void (await this.#goto(this.tab(pageId), to()))
      case 'back':
        return void (await this.#navigate(this.tab(pageId), (page, options) => page.goBack(options)))
      case 'forward':
        return void (await this.#navigate(this.tab(pageId), (page, options) => page.goForward(options)))
      case 'reload':
        return void (await this.#navigate(this.tab(pageId), (page, options) => page.reload(options)))
    }
  }

  get #context(): BrowserContext {
    return this.#chromium.browser.contexts()[0] ?? refuse('conflict', 'the browser is ending')
  }

  async #begin(): Promise<void> {
    const { browser } = this.#chromium
    this.#session = await browser.newBrowserCDPSession()
    await this.#session.send('Browser.setDownloadBehavior', { behavior: 'deny' })
    await this.#context.addInitScript(NO_LISTS)
    this.#context.on('page', page => void this.#add(page).catch(ignored('the page has closed')))
    for (const page of this.#context.pages()) await this.#add(page)
  }

  /**
   * Asks the browser for the titles of its pages, not the pages themselves, because a page that hangs does not answer.
   */
  async look(): Promise<void> {
    if (!this.alive || !this.#session) return
    const { targetInfos } = await answered(this.#session.send('Target.getTargets')).catch(() => ({ targetInfos: [] }))
    const titles = new Map(targetInfos.map(({ targetId, title }) => [targetId, title]))
    const moved = [...this.#tabs.values()].filter(tab => tab.update(titles.get(tab.target)))
    if (moved.length > 0) this.#changed()
  }

  /** Adds a page to the list, once; it becomes the active one, as in a window. */
  #add(page: Page): Promise<Tab> {
    const known = this.#added.get(page)
    if (known) return known
    const added = this.#take(page)
    this.#added.set(page, added)
    return added
  }

  async #take(page: Page): Promise<Tab> {
    if (this.#tabs.size + this.#opening >= MOST_PAGES) {
      await page.close()
      return refuse('too-many', `${MOST_PAGES} pages are open: close one`)
    }
    this.#opening += 1
    const tab = await Tab.open(`p${++this.#minted}`, page).finally(() => (this.#opening -= 1))
    page.on('domcontentloaded', () => void this.look())
    page.once('close', () => setImmediate(() => this.alive && this.#drop(tab.id)))
    // A crashed page cannot be used.
    page.once('crash', () => void page.close().catch(ignored('the page has closed')))
    if (page.isClosed()) refuse('conflict', 'the page was closed meanwhile')
    this.#tabs.set(tab.id, tab)
    this.#active = tab.id
    this.#changed()
    return tab
  }

  #drop(id: string): void {
    if (!this.#tabs.delete(id)) return
    if (this.#active === id) this.#active = [...this.#tabs.keys()].at(-1)
    this.#changed()
  }

  async #open(url: string): Promise<void> {
    const to = await this.#allowed(url)
    const [first, ...more] = this.#tabs.values()
    const unused = first && more.length === 0 && first.url === 'about:blank' ? first : undefined
    if (this.#tabs.size >= MOST_PAGES) refuse('too-many', `${MOST_PAGES} pages are open: close one`)
    const before = this.#active
    const tab = unused ?? (await this.#add(await answered(this.#context.newPage())))
    try {
      await this.#reach(tab, to)
    } catch (error) {
      if (!unused) await this.#close(tab)
      if (before !== undefined && this.#tabs.has(before)) await this.#activate(this.tab(before))
      throw error
    }
    await this.#activate(tab)
  }

  async #close(tab: Tab): Promise<undefined> {
    await answered(tab.page.close())
    this.#drop(tab.id)
  }

  async #goto(tab: Tab, url: string): Promise<void> {
    await this.#reach(tab, await this.#allowed(url))
  }

  /** Checks an address before requesting it. */
  async #allowed(url: string): Promise<string> {
    const address = addressOf(url)
    if (address.protocol === 'about:') return url
    const barred = await this.#gate.barred(address)
    if (barred) refuse('unprocessable', barred)
    return address.href
  }

  async #reach(tab: Tab, url: string): Promise<void> {
    await this.#navigate(tab, (page, options) => page.goto(url, options))
  }

  async #activate(tab: Tab): Promise<void> {
    await answered(tab.page.bringToFront())
    if (!this.#tabs.has(tab.id)) return
    this.#active = tab.id
    this.#changed()
  }

  /** Navigates and waits until the response begins; describes errors in words. */
  async #navigate(
    tab: Tab,
    go: (page: Page, options: { timeout: number; waitUntil: 'commit' }) => Promise<unknown>,
  ): Promise<void> {
    const { page } = tab
    let last: string | undefined
    const failed = (request: Request) => {
      if (request.isNavigationRequest() && request.frame() === page.mainFrame()) last = request.url()
    }
    page.on('requestfailed', failed)
    const options = { timeout: NAVIGATION_MS, waitUntil: 'commit' } as const
    try {
      await settled(() => go(page, options))
      await this.look()
    } catch (error) {
      throw this.#failure(error as Error, last)
    } finally {
      page.off('requestfailed', failed)
    }
  }

  #failure(error: Error, last: string | undefined): Error {
    const address = last === undefined ? null : URL.parse(last)
    const known = address && this.#gate.failure(address)
    if (known?.barred) return new Refusal('unprocessable', known.why)
    const where = address?.host ?? 'the page'
    if (known) return new Refusal('dependency', `${where} could not be reached: ${known.why}`)
    if (error.name === 'TimeoutError')
      return new Refusal('dependency', `${where} did not answer within ${NAVIGATION_MS / 1000} s`)
    const [code] = /\bnet::ERR_[A-Z_]+/.exec(error.message) ?? []
    if (code) return new Refusal('dependency', `${where} could not be shown: ${code}`)
    if (/Download is starting/.test(error.message))
      return new Refusal('dependency', `${where} is a download, not a page`)
    if (/interrupted by another navigation/.test(error.message))
      return new Refusal('conflict', 'the page was navigated elsewhere meanwhile')
    if (/has been closed|Target closed|crashed/.test(error.message))
      return new Refusal('conflict', 'the page was closed meanwhile')
    return error
  }

  #changed(): void {
    if (this.alive) this.#last = [...this.#tabs.values()].map(tab => tab.shown(tab.id === this.#active))
    for (const listener of this.#listeners) listener()
  }
}
