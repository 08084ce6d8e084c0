import { posix } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import { webAddress } from '../../../sdk/node/network/outbound.js'
import type { BrowserCapture, BrowserReading } from '../../system/contract.js'
import { shownPicture, type KeepPicture } from '../outputs/pictures.js'
import type { ToolResult } from '../providers/adapter.js'
import type { BrowserInput } from './contract.js'
import { cut, MOST_RESULT, textContent } from './content.js'
import { done, tool } from './tool.js'
import { readFileAt } from './tree.js'

type Action = BrowserInput['action']

/** What each action takes besides the page. */
const TAKES: { readonly [action in Action]: readonly (keyof BrowserInput)[] } = {
  open: ['url'],
  goto: ['url'],
  read: [],
  click: ['ref'],
  hover: ['ref'],
  fill: ['ref', 'text'],
  press: ['key'],
  select: ['ref', 'values'],
  upload: ['ref', 'paths'],
  wait: ['text'],
  back: [],
  forward: [],
  reload: [],
  activate: [],
  picture: [],
  close: [],
}
const FIELDS = ['url', 'ref', 'text', 'key', 'values', 'paths'] as const

const isNavigation = (action: Action): action is 'back' | 'forward' | 'reload' | 'activate' | 'close' =>
  action === 'back' || action === 'forward' || action === 'reload' || action === 'activate' || action === 'close'

/** Uses the browser of the conversation, and returns the page as text. */
export const browse = tool('Browser', {
  category: 'execute',
  refine: (input, misfit) => {
    const { action, url, page } = input
    const takes = TAKES[action]
    for (const field of takes)
      if (input[field] === undefined) misfit(field, `a value, which ${action} takes`, undefined)
    for (const field of FIELDS) {
      if (input[field] !== undefined && !takes.includes(field) && !(action === 'press' && field === 'ref'))
        misfit(field, `none with ${action}`, input[field])
    }
    if (action === 'open' && page !== undefined) misfit('page', 'none with open', page)
    if (url === undefined) return
    // Whoever runs the named host would have the code.
    if (url.search(CODE) >= 0)
      misfit('url', 'an address without a one-time code: fill it into a field of the page', url)
    pageAddress(url)
  },
  describe: ({ action, url, ref, key, text, page, account }) => {
    const about = url ?? ref ?? key ?? (action === 'wait' ? text : page)
    const as = account === undefined ? '' : ` as ${account}`
    const target = `${action}${about === undefined ? '' : ` ${about}`}${as}`.slice(0, 200)
    return { target, ...(url !== undefined && { url: pageAddress(url) }) }
  },
  run: async ({ action, url, page, ref, text, key, values, paths, account }, { browser: all, references, ...tree }) => {
    const browser = all.of(account)
    const filled = (given: string) => references.text(given, 'code')
    const origins = text === undefined ? undefined : await originsOf(text, id => all.origins(id))
    if (origins && action !== 'fill') refuse('invalid', `text: values of accounts are for fill, found ${action}`)
    if (url !== undefined && (await originsOf(url, id => all.origins(id))))
      refuse('invalid', 'url: expected none of the values of an account: fill it into a field of the page')
    const at = page === undefined ? {} : { pageId: page }
    if (action === 'picture') return pictured(await browser.capture(page), tree.picture)
    if (action === 'open') return shown(await browser.open(await filled(url!)))
    if (action === 'goto' || isNavigation(action))
      return shown(await browser.act({ action, ...at, ...(url !== undefined && { url: await filled(url) }) }))
    const files = paths && (await Promise.all(paths.map(async path => fileOf(path, await readFileAt(tree, path)))))
    return shown(
      await browser.use({
        action,
        ...at,
        ...(ref !== undefined && { ref }),
        ...(text !== undefined && { text: await filled(await withCodes(text, id => all.code(id))) }),
        ...(origins && { origins: [...origins] }),
        ...(key !== undefined && { key }),
        ...(values && { values }),
        ...(files && { files }),
      }),
    )
  },
})

/** A page as a model sees it. */
const pictured = async (capture: BrowserCapture, picture: KeepPicture | undefined): Promise<ToolResult> => {
  const words = `a picture of the page ${capture.pageId}, ${capture.width} × ${capture.height} pixels`
  const sent = await shownPicture(picture, `the page ${capture.pageId}`, Buffer.from(capture.data, 'base64'))
  if (typeof sent === 'string') return done(`${words}; you do not see it: ${sent}`)
  return { ...done(words), pictures: [sent] }
}

const CODE = /\{\{code:([a-zA-Z0-9][a-zA-Z0-9_-]{0,59})\}\}/g

const VALUE = /\{\{(?:secret|code):([a-zA-Z0-9][a-zA-Z0-9_-]{0,59})(?:\/[A-Za-z0-9_./-]+)?\}\}/g

/** The origins at which every account that a text refers to is known; undefined: it refers to none. */
const originsOf = async (
  text: string,
  known: (id: string) => Promise<readonly string[] | undefined>,
): Promise<readonly string[] | undefined> => {
  const ids = new Set([...text.matchAll(VALUE)].map(([, id]) => id!))
  const named = (await Promise.all([...ids].map(known))).flatMap(origins => (origins ? [origins] : []))
  return named.length === 0 ? undefined : named[0]!.filter(origin => named.every(each => each.includes(origin)))
}

/** Fills in the one-time codes that a text refers to. */
const withCodes = async (text: string, code: (id: string) => Promise<string>): Promise<string> => {
  let filled = text
  for (const [reference, id] of text.matchAll(CODE)) filled = filled.replaceAll(reference, await code(id!))
  return filled
}

const pageAddress = (url: string): string => (url === 'about:blank' ? url : webAddress(url).href)

const fileOf = (path: string, { bytes }: { readonly bytes: Buffer }) => ({
  name: posix.basename(path),
  data: bytes.toString('base64'),
})

/** A page as a model reads it: the open pages, then the elements of the one that is shown. */
const shown = (reading: BrowserReading | undefined) => {
  if (!reading) return done('no page is open')
  const { session, pageId, text, truncated } = reading
  const pages = session.pages.map(
    ({ id, url, title }) => `${id === pageId ? '*' : ' '} ${id} ${url}${title === undefined ? '' : ` ${title}`}`,
  )
  const all = [...pages, '', text, ...(truncated ? ['[the rest of the page is left out]'] : [])].join('\n')
  return done(cut(all, MOST_RESULT), textContent(all))
}
