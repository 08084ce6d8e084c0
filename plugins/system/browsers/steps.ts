import type { Locator, Page } from 'playwright-core'
import { Refusal, refuse, ignored } from '../../../sdk/index.js'
import type { BrowserUse } from './contract.js'
import { answered } from './tab.js'

const ACTION_MS = 10_000
const LOAD_MS = 5_000
const WAIT_MS = 30_000
const READ_MS = 10_000
/** Somewhat more, so that the error of the page comes first. */
const SLACK_MS = 1_000
const MOST_READ = 100_000
const MOST_FILES_BYTES = 20 * 1024 * 1024

const AGAIN = 'read the page again, which may have changed'

type Step = Omit<BrowserUse, 'name' | 'pageId'>

/** Does what an agent asks on a page; refuses what the page does not allow, in words. */
export const takeStep = async (page: Page, step: Step): Promise<void> => {
  const { action, ref } = step
  if (action === 'read') return
  try {
    await answered(stepOn(page, step), (action === 'wait' ? WAIT_MS : ACTION_MS) + SLACK_MS)
  } catch (error) {
    throw failureOf(error as Error, ref)
  }
  await page
    .waitForLoadState('domcontentloaded', { timeout: LOAD_MS })
    .catch(ignored('a page that loads on and on is read as it is'))
}

/** The page as text, with a `ref` for each element that can be used. */
export const readPage = async (page: Page): Promise<{ text: string; truncated: boolean }> => {
  const text = await answered(page.ariaSnapshot({ mode: 'ai', timeout: READ_MS }), READ_MS + SLACK_MS).catch(error => {
    throw failureOf(error as Error, undefined)
  })
  return { text: text.slice(0, MOST_READ).toWellFormed(), truncated: text.length > MOST_READ }
}

const stepOn = async (page: Page, { action, ref, text, origins, key, values, files }: Step): Promise<unknown> => {
  const options = { timeout: ACTION_MS }
  const at = async (): Promise<Locator> => {
    const named = ref ?? lacks(action, 'ref', 'an element of the last reading')
    const found = page.locator(`aria-ref=${named}`)
    if ((await found.count()) > 0) return found
    return refuse('conflict', `expected an element of the last reading, found ${named}: ${AGAIN}`)
  }
  switch (action) {
    case 'click':
      return (await at()).click(options)
    case 'hover':
      return (await at()).hover(options)
    case 'fill': {
      const given = text ?? lacks(action, 'text', 'the text to write')
      return origins ? fillWithin(await at(), given, origins) : (await at()).fill(given, options)
    }
    case 'press': {
      const named = key ?? lacks(action, 'key', 'the name of a key')
      return ref === undefined ? page.keyboard.press(named) : (await at()).press(named, options)
    }
    case 'select':
      return (await at()).selectOption([...(values ?? lacks(action, 'values', 'what to select'))], options)
    case 'upload':
      return (await at()).setInputFiles(buffersOf(files ?? lacks(action, 'files', 'the files to give')), options)
    case 'wait': {
      const awaited = text ?? lacks(action, 'text', 'the text to wait for')
      return page.getByText(awaited).first().waitFor({ timeout: WAIT_MS })
    }
    case 'read':
      return undefined
  }
}

/** Writes only in a document of one of these origins: that of the frame, which may be another than that of the page. */
const fillWithin = async (found: Locator, given: string, origins: readonly string[]): Promise<void> => {
  // It belongs to this document: after the look, a document that takes its place gets nothing.
  const field = (await found.elementHandle({ timeout: ACTION_MS }))!
  const frame = await field.ownerFrame()
  const { origin } = new URL(frame?.url() || 'about:blank')
  const named = origin.startsWith('https:') ? [origin, origin.replace('https:', 'http:')] : [origin]
  if (!named.some(each => origins.includes(each)))
    refuse(
      'forbidden',
      `the value is filled in on pages of ${origins.join(', ') || 'no site'} alone, found ${origin.slice(0, 100)}: `
        + 'an account names its site in its address',
    )
  await field.fill(given, { timeout: ACTION_MS })
}

const lacks = (action: string, path: string, expected: string): never =>
  refuse('invalid', `${action} takes ${path}: expected ${expected}, found nothing`, {
    errors: [{ path, expected }],
  })

const buffersOf = (files: NonNullable<Step['files']>) => {
  const given = files.map(({ name, data }) => ({
    name,
    mimeType: 'application/octet-stream',
    buffer: Buffer.from(data, 'base64'),
  }))
  const bytes = given.reduce((all, { buffer }) => all + buffer.length, 0)
  if (bytes > MOST_FILES_BYTES)
    refuse('too-large', `expected files of at most ${MOST_FILES_BYTES} bytes together, found ${bytes}`)
  return given
}

const failureOf = (error: Error, ref: string | undefined): Error => {
  if (error instanceof Refusal) return error
  // The rest is the log of the library.
  const [said = ''] = error.message.replace(/^[\w.]+: /, '').split('\n')
  if (/has been closed|Target closed|crashed/.test(said))
    return new Refusal('conflict', 'the page was closed meanwhile')
  if (error.name === 'TimeoutError')
    return ref === undefined
      ? new Refusal('dependency', `the page did not come so far in time: ${AGAIN}`)
      : new Refusal('dependency', `${ref} could not be used within ${ACTION_MS / 1000} s: ${AGAIN}`)
  return new Refusal('unprocessable', `the page does not allow it: ${said.slice(0, 300)}`)
}
