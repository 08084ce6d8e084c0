import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { withChromium } from '../../../support/browser/browser.js'
import { barriersOf, findDaemonSocket, goTo, loginLink, openTab, ownBrowser } from '../../../support/browser/console.js'
import { project } from '../../../support/browser/page.js'
import { spawnUnwalled, unwalled } from '../../../support/unwalled.js'

const registry = readFileSync(join(project, 'plugins/console/web/pages/registry.ts'), 'utf8')
const NAMES = [...registry.matchAll(/^ {4}name: '([^']+)'/gm)].map(([, name]) => name!).filter(name => name !== 'x')

const skip = withChromium().skip ?? unwalled().skip

t.test('where there is no wall each page of the console says so', { skip }, async t => {
  const daemon = await spawnUnwalled(t, { 'a.txt': 'one\n' })
  const { page } = await openTab(await ownBrowser(t), daemon, {})
  await page.goto(await loginLink({ socket: findDaemonSocket(daemon.data) }))
  const bar = page.locator('.banner', { hasText: 'There is no wall' })
  await bar.waitFor()
  for (const [width, height] of [
    [1280, 800],
    [360, 740],
  ] as const) {
    await page.setViewportSize({ width, height })
    for (const name of NAMES) {
      await goTo(page, `#/${name}`)
      const { y, width: wide } = (await bar.boundingBox())!
      t.ok(y >= 0 && y < 80 && wide > width / 2, `${name} at ${width} px`)
    }
    t.same(await barriersOf(page), [])
  }
  await daemon.terminate()
})
