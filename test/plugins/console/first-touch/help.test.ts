import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import t from 'tap'
import { guidePlace, headingAnchor } from '../../../../plugins/console/web/data/guide-links.js'
import { withChromium } from '../../../support/browser/browser.js'
import { CONSOLE_GROUPS, endJourney, goTo, launchBrowser, ownerTab } from '../../../support/browser/console.js'
import { project } from '../../../support/browser/page.js'
import { daemonWith } from '../../../support/daemon.js'

const GUIDES = globSync('plugins/*/README.md', { cwd: project })
  .sort()
  .map(file => {
    const text = readFileSync(join(project, file), 'utf8')
    return { group: basename(dirname(file)), text, title: /^# +(.+)$/m.exec(text)?.[1]?.replace(/[`*]/g, '').trim() }
  })
const GROUPS = new Set(GUIDES.map(({ group }) => group))

t.test('links of a guide lead to other guides and to headings', t => {
  const groups = new Set(['agents', 'system'])
  for (const [href, place] of [
    ['../agents/README.md', '#/help/agents'],
    ['../agents/', '#/help/agents'],
    ['../../plugins/agents/README.md', '#/help/agents'],
    ['../agents/README.md#how-it-lands', '#/help/agents/how-it-lands'],
    ['#how-it-lands', '#/help/system/how-it-lands'],
    ['README.md', '#/help/system'],
    ['../other/README.md', undefined],
    ['../../kernel/WALL.md', undefined],
    ['../agents/contract.ts', undefined],
    ['https://example.org/agents/README.md', undefined],
    ['javascript:alert(1)', undefined],
    ['', undefined],
  ] as const)
    t.equal(guidePlace('system', groups, href), place, href)
  t.equal(headingAnchor('How it lands: `land`, and why'), 'how-it-lands-land-and-why')
  t.end()
})

t.test("each group's guide is reachable from the console's help", withChromium(), async t => {
  const daemon = await daemonWith(t, CONSOLE_GROUPS)
  const tab = await ownerTab(await launchBrowser(t), daemon, '#/fleet')
  const { page } = tab
  const asked: string[] = []
  page.on('request', request => asked.push(request.url()))
  await page.keyboard.press('?')
  await page.getByRole('link', { name: 'Guides' }).click()
  await page.getByRole('heading', { name: 'Help', exact: true }).waitFor()
  t.same(
    await page.locator('.items a').evaluateAll(links => links.map(link => link.getAttribute('href'))),
    GUIDES.map(({ group }) => `#/help/${group}`),
    'every guide is listed, and no group without one',
  )
  const loaded = () => asked.filter(url => url.includes('/console/')).length
  const before = loaded()
  for (const { group, title, text } of GUIDES) {
    await goTo(page, '#/help')
    await page.locator(`.items a[href="#/help/${group}"]`).click()
    await page.getByRole('heading', { level: 1, name: title ?? group, exact: true }).waitFor()
    await page.locator('.guide .prose').waitFor()
    // Commands and outputs are shown whole, without what they are marked with.
    const words = /^(?!#|`|\||!|\[|-|\s|$)[\w ,]{12,40}/m.exec(text.replace(/^```[^]*?^```/gm, ''))?.[0]
    if (words) t.ok((await page.locator('.guide').textContent())?.includes(words), `${group}: ${words}`)
    for (const href of await page.locator('.guide a').evaluateAll(all => all.map(one => one.getAttribute('href')!))) {
      if (!href.startsWith('#')) {
        t.match(href, /^(?:https?:|mailto:)/)
        continue
      }
      const [, , to, anchor] = href.split('/')
      t.ok(GROUPS.has(to!), `${group} links to ${href}`)
      const headings = GUIDES.find(one => one.group === to)!.text.matchAll(/^#+ +(.+)$/gm)
      if (anchor)
        t.ok(
          [...headings].some(([, words]) => headingAnchor(words!) === anchor),
          `${group}: ${href}`,
        )
    }
  }
  t.ok(loaded() - before <= GUIDES.length + 2, 'a guide is loaded when it is read')
  await goTo(page, '#/help/none')
  await page.getByText('There is no guide of this name.').waitFor()
  // No request to another origin is one of its checks.
  await endJourney(t, tab)
})
