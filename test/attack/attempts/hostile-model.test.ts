import t from 'tap'
import type { Frame } from '../../../plugins/agent/contract.js'
import type { WireProtocol } from '../../../plugins/endpoints/contract.js'
import type { Client } from '../../../sdk/client.js'
import { sandbox } from '../../sdk/cli/cli-process.js'
import { withChromium } from '../../support/browser/browser.js'
import { CONSOLE_GROUPS, goTo, launchBrowser, ownerTab } from '../../support/browser/console.js'
import { daemonWith } from '../../support/daemon.js'
import { tookLess } from '../../support/in-time.js'
import { spread } from '../../support/lists.js'
import { framesOf } from '../../support/turns.js'
import { daemonOf } from '../network/user-daemon.js'
import { walled } from '../support.js'
import { USERS, shareOf } from '../users.js'
import { diskMiB, forgetPeak, peakMiB, watched } from './daemon-watch.js'
import { ANSWERS, hostileModels, REPLIES } from './hostile-model.js'
import { UNSHOWN, withoutStyles } from './hostile-texts.js'

const PROTOCOLS = ['openai', 'anthropic', 'ollama'] as const satisfies WireProtocol[]
const NAMES = [...Object.keys(ANSWERS), ...Object.keys(REPLIES)]
const ATTEMPTS = PROTOCOLS.flatMap(protocol => NAMES.map(model => ({ protocol, model })))

/** What a turn says until its end; at the second pause before a request that failed for now, a person stops it. */
const ended = async (client: Client, conversationId: string): Promise<Frame[]> => {
  const watch = framesOf(client, conversationId)
  let retries = 0
  await watch.until(({ kind }) => kind === 'done' || (kind === 'provider_retry' && ++retries === 2))
  if (retries === 2) await client.call('POST /agent/stop', { conversationId })
  return (await watch.all()).map(({ event }) => event)
}

/** So many attempts of a user run at once: they mostly wait, as after a refusal. */
const AT_ONCE = 3

t.setTimeout(1_200_000)
t.jobs = USERS.length + 1

for (const [user, uid] of USERS) {
  const options = { ...walled(), buffered: true }
  t.test(`${user}: a turn with a hostile model server ends, and the daemon goes on`, options, async t => {
    t.jobs = AT_ONCE
    const { client, url, pid, data } = await daemonOf(t, uid, { 'README.md': '# work\n' })
    const { token } = await client.call('POST /system/control/tokens', { label: 'cli', scope: 'read' })
    const health = watched(t, url)
    const env = { SANDBOX_URL: url, SANDBOX_TOKEN: token, COLUMNS: '100' }
    for (const protocol of PROTOCOLS) {
      const { baseUrl } = await hostileModels(t, protocol)
      await client.call('POST /endpoints', { id: protocol, kind: 'server', protocol, baseUrl })
    }
    const attempts = shareOf(uid, spread(ATTEMPTS, 14, ATTEMPTS.length / 3)).entries()
    const tried = [...attempts].map(([at, { protocol, model }]) =>
      t.test(`${protocol}: ${model}`, { buffered: true }, async t => {
        const conversationId = `c-${at}`
        forgetPeak(pid)
        const disk = diskMiB(data)
        await client.call('POST /agent', {
          ...{ conversationId, agent: `endpoint/${protocol}`, model, isolated: true },
          ...{ prompt: 'go', permissionMode: 'bypassPermissions' },
        })
        const frames = await ended(client, conversationId)
        const end = frames.at(-1)
        t.equal(end?.kind, 'done')
        t.ok(tookLess(health.longest(), 6_000), 'the daemon answers meanwhile')
        t.ok(peakMiB(pid) < 1_500, `${Math.round(peakMiB(pid))} MiB of memory`)
        t.ok(diskMiB(data) - disk < 150, `${Math.round(diskMiB(data) - disk)} MiB on disk`)
        const errors = frames.flatMap(frame => (frame.kind === 'error' ? [frame.message] : []))
        if (end?.kind === 'done' && end.reason === 'failed') t.equal(errors.length, 1)
        for (const error of errors) {
          t.notMatch(error, /unexpectedly|[\p{Cc}\p{Cf}]/u)
          t.ok(error.length < 1_000)
        }
        const args = [['transcript'], ['attach'], ['transcript', '--json']][at % 3]!
        const { out, err } = await sandbox([...args, conversationId], { env })
        t.equal(UNSHOWN.exec(withoutStyles(out + err))?.[0], undefined, args.join(' '))
      }),
    )
    await Promise.all(tried)
    t.equal(({} as { polluted?: unknown }).polluted, undefined)
  })
}

const inBrowser = { ...withChromium(), buffered: true }
t.test('what a hostile model server answers is text in the console', inBrowser, async t => {
  const daemon = await daemonWith(t, [...CONSOLE_GROUPS, 'endpoints', 'capabilities'])
  const { baseUrl } = await hostileModels(t, 'openai')
  await daemon.client.call('POST /endpoints', { id: 'e', kind: 'server', protocol: 'openai', baseUrl })
  const browser = await launchBrowser(t)
  const tab = await ownerTab(browser, daemon, '#/fleet')
  for (const [at, model] of NAMES.filter(name => name.includes('hostile')).entries()) {
    const conversationId = `c-${at}`
    const turn = { agent: 'endpoint/e', model, prompt: 'go', permissionMode: 'bypassPermissions' as const }
    await daemon.client.call('POST /agent', { conversationId, ...turn })
    await ended(daemon.client, conversationId)
    await goTo(tab.page, `#/c/${conversationId}`)
    await tab.page.getByText('go', { exact: true }).first().waitFor()
    await tab.page
      .locator('main')
      .getByText(/over|model server|52;c/)
      .first()
      .waitFor({ state: 'attached' })
    const shown = await tab.page.locator('main').innerText()
    t.equal(UNSHOWN.exec(shown)?.[0], undefined, model)
    t.equal(await tab.page.evaluate('window.owned'), undefined)
    const links = await tab.page
      .locator('main a')
      .evaluateAll(found => found.map(one => one.getAttribute('href') ?? ''))
    t.same(
      links.filter(link => !/^(?:#|https?:\/\/)/.test(link)),
      [],
    )
    t.equal(await tab.page.locator('main img').count(), 0)
  }
  t.same(tab.faults, [])
})
