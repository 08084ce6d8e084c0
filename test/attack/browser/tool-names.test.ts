import t, { type Test } from 'tap'
import type { Page } from 'playwright-core'
import { withChromium } from '../../support/browser/browser.js'
import { CONSOLE_GROUPS, goTo, launchBrowser, ownerTab } from '../../support/browser/console.js'
import { daemonWith } from '../../support/daemon.js'
import { modelServer } from '../../support/servers/model-server.js'
import { framesOf } from '../../support/turns.js'
import { add, vaultFake } from '../../plugins/capabilities/support.js'
import { hostileToolServer } from '../attempts/hostile-tools.js'
import { UNSHOWN } from '../attempts/hostile-texts.js'
import { hitting } from '../attempts/hostile-tools.js'

t.setTimeout(180_000)

/** What a page shows and says to readers of screens is text, and nothing of it runs, leads away or hides the rest. */
const isPlain = async (t: Test, page: Page, part: string, what: string): Promise<void> => {
  const found = page.locator(part).first()
  t.equal(UNSHOWN.exec(await found.innerHTML())?.[0], undefined, `${what}: nothing is hidden or turned around`)
  t.equal(await page.evaluate('window.owned'), undefined, `${what}: nothing runs`)
  t.equal(await found.locator('script, style, iframe').count(), 0, `${what}: no markup`)
  const links = await found.locator('a').evaluateAll(all => all.map(one => one.getAttribute('href') ?? ''))
  t.same(
    links.filter(link => !/^(?:#|https?:\/\/)/.test(link)),
    [],
    what,
  )
  const size = page.viewportSize()!
  await page.setViewportSize({ width: 320, height: size.height })
  t.notOk(await page.evaluate('document.documentElement.scrollWidth > innerWidth'), `${what}: it fits a phone`)
  await page.setViewportSize(size)
}

t.test('names and texts of a hostile tool server are text in the console', withChromium(), async t => {
  const groups = [...CONSOLE_GROUPS, 'endpoints', 'capabilities']
  const daemon = await daemonWith(t, groups, { fakes: vaultFake().fakes })
  const { client } = daemon
  const { baseUrl } = (await modelServer(t, 'openai', hitting)).target()
  await client.call('POST /endpoints', { id: 'e', kind: 'server', protocol: 'openai', baseUrl })
  const urlOf = await hostileToolServer(t)
  const { page, faults } = await ownerTab(await launchBrowser(t), daemon, '#/fleet')
  for (const [at, way] of (['hostile info', 'hostile names', 'hostile error', 'a hostile question'] as const).entries())
    await t.test(way, async t => {
      await add(daemon, { id: 'evil', kind: 'mcp', config: { url: urlOf(way), approve: 'always' } })
      await goTo(page, '#/connections')
      const connected = page.getByRole('region', { name: 'Connected' })
      await connected.getByText('evil', { exact: true }).first().waitFor()
      await isPlain(t, page, 'main', 'the connections')
      await connected.getByRole('button', { name: /^Tools/ }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText('hit', { exact: true }).first().waitFor()
      await isPlain(t, page, 'dialog', 'the tools')
      await dialog.getByRole('button', { name: 'Done' }).click()

      const conversationId = `c-${at}`
      await client.call('POST /agent', {
        conversationId,
        agent: 'endpoint/e',
        model: 'm',
        prompt: 'go',
        permissionMode: 'default',
      })
      const watch = framesOf(client, conversationId)
      await goTo(page, `#/c/${conversationId}`)
      const { requestId } = await watch.until(({ kind }) => kind === 'permission')
      await page.getByRole('button', { name: /^Allow once/ }).waitFor()
      await isPlain(t, page, 'main', 'the question whether it may')
      await client.call('POST /agent/reply', { kind: 'permission', requestId, decision: 'once' })
      const { kind, requestId: asked } = await watch.until(each => each.kind === 'done' || each.kind === 'question')
      if (kind === 'question') {
        await page.getByRole('button', { name: 'Skip' }).waitFor()
        await isPlain(t, page, 'main', 'its own question')
        await client.call('POST /agent/reply', { kind: 'question', requestId: asked, answers: {} })
        await watch.until(each => each.kind === 'done')
      }
      await page.getByText('over', { exact: true }).last().waitFor()
      await isPlain(t, page, 'main', 'the conversation')
      await client.call('DELETE /capabilities/{id}', { id: 'evil' })
    })
  t.same(faults, [])
})
