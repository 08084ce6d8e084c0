import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { guidePlace, headingAnchor } from '../../../../plugins/console/web/data/guide-links.js'
import { withChromium } from '../../../support/browser/browser.js'
import { CONSOLE_GROUPS, endJourney, goTo, launchBrowser, ownerTab } from '../../../support/browser/console.js'
import { project } from '../../../support/browser/page.js'
import { daemonWith } from '../../../support/daemon.js'

const GUIDES = globSync(
  ['kernel/{README,WALL}.md', 'plugins/*/README.md', 'sdk/{GLOSSARY,PERMISSIONS,README,REFERENCE}.md'],
  {
    cwd: project,
  },
)
  .sort()
  .map(file => {
    const text = readFileSync(join(project, file), 'utf8')
    const name = file
      .replace(/^plugins\//, '')
      .replace(/\/README\.md$/, '')
      .replace('/', '-')
      .replace('.md', '')
    const title = /^# +(.+)$/m.exec(text)?.[1]?.replace(/[`*]/g, '').trim()
    return { name: name.toLowerCase(), title, text }
  })

t.test('links of a guide lead to other guides and to headings', t => {
  const names = new Map([
    ['plugins/agents/README.md', 'agents'],
    ['plugins/system/README.md', 'system'],
    ['kernel/WALL.md', 'kernel-wall'],
  ])
  for (const [href, place] of [
    ['../agents/README.md', '#/help/agents'],
    ['../agents/', '#/help/agents'],
    ['../../plugins/agents/README.md', '#/help/agents'],
    ['../agents/README.md#how-it-lands', '#/help/agents/how-it-lands'],
    ['#how-it-lands', '#/help/system/how-it-lands'],
    ['README.md', '#/help/system'],
    ['../../kernel/WALL.md', '#/help/kernel-wall'],
    ['../other/README.md', undefined],
    ['../agents/contract.ts', undefined],
    ['../../../etc/passwd', undefined],
    ['//example.org/plugins/agents/README.md', undefined],
    ['https://example.org/agents/README.md', undefined],
    ['javascript:alert(1)', undefined],
    ['', undefined],
  ] as const)
    t.equal(guidePlace('plugins/system/README.md', names, href), place, href)
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
    GUIDES.map(({ name }) => `#/help/${name}`),
    'every guide is listed, and no group without one',
  )
  const loaded = () => asked.filter(url => url.includes('/console/')).length
  const before = loaded()
  t.ok(GUIDES.length > 40)
  for (const { name, title, text } of GUIDES) {
    await goTo(page, '#/help')
    await page.locator(`.items a[href="#/help/${name}"]`).click()
    await page.getByRole('heading', { level: 1, name: title ?? name, exact: true }).waitFor()
    await page.locator('.guide .prose').waitFor()
    // Commands and outputs are shown whole, without what they are marked with.
    const words = /^(?!#|`|\||!|\[|-|\s|$)[\w ,]{12,40}/m.exec(text.replace(/^```[^]*?^```/gm, ''))?.[0]
    t.notMatch(await page.locator('.guide').textContent(), /\[image:|\| ---/, 'without pictures')
    if (words) t.ok((await page.locator('.guide').textContent())?.includes(words), `${name}: ${words}`)
    for (const href of await page.locator('.guide a').evaluateAll(all => all.map(one => one.getAttribute('href')!))) {
      if (!href.startsWith('#')) {
        t.match(href, /^(?:https?:|mailto:)/)
        continue
      }
      const [, , to, anchor] = href.split('/')
      const linked = GUIDES.find(one => one.name === to)
      t.ok(linked, `${name} links to ${href}`)
      const headings = linked?.text.matchAll(/^#+ +(.+)$/gm) ?? []
      if (anchor)
        t.ok(
          [...headings].some(([, words]) => headingAnchor(words!) === anchor),
          `${name}: ${href}`,
        )
    }
  }
  // A guide with code loads the grammar of its language too.
  t.ok(loaded() - before <= GUIDES.length + 12, `${loaded() - before} files: a guide is loaded when it is read`)
  await goTo(page, '#/help/none')
  await page.getByText('There is no guide of this name.').waitFor()
  // No request to another origin is one of its checks.
  await endJourney(t, tab)
})
