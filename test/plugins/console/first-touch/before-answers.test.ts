import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page, Route } from 'playwright-core'
import t, { type Test } from 'tap'
import { until, withChromium } from '../../../support/browser/browser.js'
import { launchBrowser, ownerBrowser } from '../../../support/browser/console.js'
import { project } from '../../../support/browser/page.js'
import { daemonWith, root } from '../../../support/daemon.js'
import { framesOf, runTurn } from '../../../support/turns.js'

const registry = readFileSync(join(project, 'plugins/console/web/pages/registry.ts'), 'utf8')
const NAMES = [...registry.matchAll(/^ {4}name: '([^']+)'/gm)].map(([, name]) => name!).filter(name => name !== 'x')
const PARTS: { readonly [page: string]: readonly string[] } = {
  c: ['#/c/done', '#/c/done/changes'],
  git: ['#/git', '#/git/root'],
  files: ['#/files', '#/files/open/README.md'],
}
const PLACES = NAMES.flatMap(name => PARTS[name] ?? [`#/${name}`])

/** A sentence that says that there is nothing. */
const EMPTY = /\b(?:no|nothing|none|nobody|never|not)\b|\bappears? here\b/i

/** The titles of guides, which the console has without asking. */
const TITLES = globSync(['plugins/*/README.md', 'kernel/*.md', 'sdk/*.md'], { cwd: project }).flatMap(
  file => /^# (.+)$/m.exec(readFileSync(join(project, file), 'utf8'))?.[1] ?? [],
)
/** Sentences of this form that are true whatever the daemon answers. */
const ALWAYS = new Set([
  'Work in a private copy: nothing changes in the workspace until the work is landed',
  'What an apply would change on the machines. It changes nothing itself.',
  ...TITLES,
])
/** A port that a program of the machine opened meanwhile. */
const PORT = /^\d+ · /
const saysNothing = (text: string): boolean => EMPTY.test(text) && !ALWAYS.has(text) && !PORT.test(text)

/** Every text that a person sees in the page, each of one element. */
const SENTENCES = `[...document.querySelectorAll('.page *')]
  .filter(one => one.checkVisibility({ visibilityProperty: true })
    && [...one.childNodes].some(({ nodeType, data }) => nodeType === 3 && data.trim()))
  .map(one => one.textContent.trim().replace(/\\s+/g, ' '))`

/** Passes the calls of a page on, but for those that are held back. */
const holdCalls = async (page: Page) => {
  let holds: (call: string) => boolean = () => false
  const asked = new Set<string>()
  const held: Route[] = []
  let open = 0
  const isCall = ({ pathname, protocol }: URL) => protocol !== 'blob:' && !/^\/(?:console\/|$)/.test(pathname)
  await page.route(isCall, async route => {
    const request = route.request()
    const call = `${request.method()} ${new URL(request.url()).pathname}`
    asked.add(call)
    if (holds(call)) return void held.push(route)
    open += 1
    await route.continue().catch(() => {})
    // A stream is open for as long as the page.
    if (call !== 'GET /events') await request.response().catch(() => {})
    open -= 1
  })
  // An address gets 600 pages and files a minute.
  const built = (path: string) => join(root, 'bundle', path)
  await page.route(/\/console\/[^/]+$/, route =>
    route.fulfill({ path: built(new URL(route.request().url()).pathname.slice(1)) }),
  )
  return {
    /** Loads a place anew while some calls are held back, and returns its sentences and the calls it made. */
    open: async (place: string, which: (call: string) => boolean) => {
      holds = which
      asked.clear()
      await page.evaluate(`location.hash = ${JSON.stringify(place)}`)
      await page.reload()
      await page.locator('.page main').first().waitFor({ state: 'attached' })
      let quiet = 0
      await until(async () => {
        await page.evaluate('new Promise(resolve => requestAnimationFrame(resolve))')
        quiet = open === 0 ? quiet + 1 : 0
        return quiet > 8
      })
      const sentences = (await page.evaluate(SENTENCES)) as string[]
      const links = `[...document.querySelectorAll('.page .tabs a[href^="#/"]')].map(one => one.getAttribute('href'))`
      const tabs = (await page.evaluate(links)) as string[]
      for (const route of held.splice(0)) await route.continue().catch(() => {})
      return { sentences, tabs, calls: [...asked] }
    },
  }
}

t.setTimeout(300_000)

t.test('no page says that there is nothing before its calls are answered', withChromium(), async t => {
  const daemon = await daemonWith(t, [], { files: { 'README.md': '# work\n', 'src/main.ts': 'export {}\n' } })
  const { client } = daemon
  await runTurn(client, 'done', 'write src/new.ts\n| export const one = 1\nsay **done**', { isolated: true })
  await client.call('POST /agent', { conversationId: 'asks', prompt: 'ask Which one?\n| first\n| second' })
  await framesOf(client, 'asks').until(({ kind }) => kind === 'question')
  writeFileSync(join(daemon.workspace, 'README.md'), '# changed\n')
  const { page } = await ownerBrowser(await launchBrowser(t), daemon, '#/more', {})
  const calls = await holdCalls(page)
  const shell = new Set((await calls.open('#/more', () => false)).calls)
  shell.delete('GET /events')

  const seen = new Set<string>()
  const unknown = async (t: Pick<Test, 'same'>, place: string) => {
    seen.add(place)
    const { sentences } = await calls.open(place, call => !shell.has(call))
    t.same(sentences.filter(saysNothing), [], 'while every call is held back')
  }
  for (const place of PLACES) {
    const known = await calls.open(place, () => false)
    const own = known.calls.filter(call => !shell.has(call) && call.startsWith('GET '))
    await t.test(place, async t => {
      await unknown(t, place)
      for (const call of own.length > 1 ? own : []) {
        const { sentences } = await calls.open(place, one => one === call)
        t.same(
          sentences.filter(text => saysNothing(text) && !known.sentences.includes(text)),
          [],
          `while ${call} is held back`,
        )
      }
    })
    for (const tab of known.tabs) if (!seen.has(tab)) await t.test(tab, t => unknown(t, tab))
  }
  t.ok(seen.size > PLACES.length, 'with the parts of pages')
})
