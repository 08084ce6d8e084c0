import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { withChromium } from '../../../support/browser/browser.js'
import { barriersOf, CONSOLE_GROUPS, endJourney, launchBrowser, ownerTab } from '../../../support/browser/console.js'
import { davServer, mountsBelow, withMounts } from '../../../support/servers/share-servers.js'
import { addDisk, disksWorld } from '../../disks/support.js'

t.test('disks in the console', { ...withMounts('rclone'), ...withChromium() }, async t => {
  const { daemon, mounts, folder } = await disksWorld(t, CONSOLE_GROUPS)
  const shared = folder('shared')
  mkdirSync(join(shared, 'photos'))
  writeFileSync(join(shared, 'hello.txt'), 'hello\n')
  const dav = await davServer(t, shared)
  await addDisk(daemon.client, 'photos', { provider: 'webdav', url: dav.url, cache: 'off' })
  const browser = await launchBrowser(t)

  await t.test('a share is mounted, its details are read, and it is unmounted', async t => {
    const tab = await ownerTab(browser, daemon, '#/disks')
    const { page } = tab
    const row = page.getByRole('listitem').filter({ hasText: dav.url })
    await row.getByText('Not mounted').waitFor()
    await row.getByRole('button', { name: 'Mount photos' }).click()
    await row.getByText('Mounted', { exact: true }).waitFor()
    t.same(mountsBelow(mounts), [join(mounts, 'photos')])
    await row.getByRole('button', { name: 'Details photos' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('with rclone at').waitFor()
    t.same(await barriersOf(page), [])
    await dialog.getByRole('button', { name: 'Done' }).click()
    await row.getByRole('button', { name: 'Unmount photos' }).click()
    await row.getByText('Not mounted').waitFor()
    t.same(mountsBelow(mounts), [])
    await endJourney(t, tab)
  })
})
