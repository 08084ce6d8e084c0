import { setTimeout as delay } from 'node:timers/promises'
import type { CDPSession, Page } from 'playwright-core'
import { Refusal, ignored } from '../../../sdk/index.js'
import type { BrowserCapture, BrowserPage } from './contract.js'
import { VIEWPORT } from './chromium.js'

const ANSWER_MS = 10_000
const MOST_TEXT = 200_000
const MOST_FRAMES = 50
const MOST_TRIES = 20
const AGAIN_MS = 50
/** The quality at which letters have no visible artefacts. */
const SHARP = 90

/** One page of a browser, with its last known state, because a page that hangs does not answer. */
export class Tab {
  readonly id: string
  readonly page: Page
  /** The browser's own name for it. */
  readonly target: string
  title = ''
  url: string
  readonly session: CDPSession

  private constructor(id: string, page: Page, session: CDPSession, target: string) {
    this.id = id
    this.page = page
    this.target = target
    this.url = page.url()
    this.session = session
  }

  static async open(id: string, page: Page): Promise<Tab> {
    const session = await page.context().newCDPSession(page)
    const { targetInfo } = await session.send('Target.getTargetInfo')
    await page.setViewportSize(VIEWPORT)
    return new Tab(id, page, session, targetInfo.targetId)
  }

  /** Updates its address and title; returns whether they changed. */
  update(title: string | undefined): boolean {
    const before = [this.url, this.title]
    const url = this.page.url()
    if (url && !url.startsWith('chrome-error:')) this.url = url
    // A page without a title is named by its address.
    if (title !== undefined) this.title = this.url.replace(/^https?:\/\//, '').startsWith(title) ? '' : title
    return this.url !== before[0] || this.title !== before[1]
  }

  /** Its entry in a list. */
  shown(active: boolean): BrowserPage {
    const title = this.title.slice(0, 300)
    return { id: this.id, ...(title && { title }), url: this.url.slice(0, 4000), active }
  }

  /** The sharp picture of what it shows. */
  async picture(): Promise<string> {
    const { data } = await settled(() =>
      answered(this.session.send('Page.captureScreenshot', { format: 'webp', quality: SHARP })),
    )
    return data
  }

  /** Its picture and its text. */
  async capture(): Promise<BrowserCapture> {
    const data = await this.picture()
    const text = String(
      (await this.ask(
        `(document.body?.innerText ?? document.documentElement?.textContent ?? '').slice(0, ${MOST_TEXT + 1})`,
      )) ?? '',
    )
    return {
      pageId: this.id,
      mime: 'image/webp',
      data,
      ...VIEWPORT,
      text: text.slice(0, MOST_TEXT).toWellFormed(),
      truncated: text.length > MOST_TEXT,
    }
  }

  /** Evaluates an expression in the main document, in an isolated world that the page's scripts cannot change. */
  ask(expression: string): Promise<unknown> {
    return settled(async () => {
      const { frameTree } = await answered(this.session.send('Page.getFrameTree'))
      return this.#askIn(frameTree.frame.id, expression)
    })
  }

  /** The first defined result, from the main document and the frames that run in the same process. */
  async askAll(expression: string, within?: number): Promise<unknown> {
    const { frameTree } = await answered(this.session.send('Page.getFrameTree'), within)
    const trees = [frameTree]
    for (const { frame, childFrames } of trees) {
      const value = await this.#askIn(frame.id, expression, within).catch(error =>
        frame === frameTree.frame ? Promise.reject(error as Error) : undefined,
      )
      if (value !== undefined && value !== '') return value
      if (trees.length < MOST_FRAMES) trees.push(...(childFrames ?? []))
    }
    return undefined
  }

  async #askIn(frameId: string, expression: string, within?: number): Promise<unknown> {
    const { executionContextId } = await answered(
      this.session.send('Page.createIsolatedWorld', { frameId, worldName: 'sandbox' }),
      within,
    )
    const { result } = await answered(
      this.session.send('Runtime.evaluate', { contextId: executionContextId, returnByValue: true, expression }),
      within,
    )
    return result.value as unknown
  }
}

/** Errors while one document replaces another, or an error page replaces a document. */
const BETWEEN = new RegExp(
  [
    'Not attached to an active page',
    'interrupted by another navigation to "chrome-error:',
    'Cannot find context',
    'No frame (?:for|with) given id',
    'Frame was detached',
  ].join('|'),
  'i',
)

/** Repeats a request that failed because the document was being replaced. */
export const settled = async <T>(ask: () => Promise<T>): Promise<T> => {
  for (let tries = 1; ; tries++) {
    try {
      return await ask()
    } catch (error) {
      if (tries === MOST_TRIES || !BETWEEN.test((error as Error).message)) throw error
      await delay(AGAIN_MS)
    }
  }
}

/** The answer of a page; refuses if it takes too long. */
export const answered = async <T>(asked: Promise<T>, within = ANSWER_MS): Promise<T> => {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () =>
      late.reject(new Refusal('dependency', `the page did not answer within ${within / 1000} s: reload or close it`)),
    within,
  )
  try {
    return await Promise.race([asked, late.promise])
  } finally {
    clearTimeout(timer)
    asked.catch(ignored('it came too late'))
  }
}
