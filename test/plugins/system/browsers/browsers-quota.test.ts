import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Browsers } from '../../../../plugins/system/browsers/browsers.js'
import { fit, type DiskQuota } from '../../../../plugins/system/browsers/quota.js'
import { folderExceeds } from '../../../../sdk/node/files/folder-exceeds.js'
import { siteOf, until, withChromium, withoutWindows, type Page } from '../../../support/browser/browser.js'
import { folderOf, makeWorkspace, root } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'

withoutWindows(t)

const MEBIBYTE = 1024 * 1024

/** A page that stores a number of mebibytes, and reports the result in its title. */
const keeping = (mebibytes: number): Page => `<title>begun</title><script>(async () => {
  const piece = new Uint8Array(${MEBIBYTE})
  for (let at = 0; at < piece.length; at += 65536) crypto.getRandomValues(piece.subarray(at, at + 65536))
  const kept = await caches.open('kept')
  try {
    for (let n = 0; n < ${mebibytes}; n++) await kept.put('/' + n, new Response(piece))
    document.title = 'kept'
  } catch (error) {
    document.title = error.name + ' of ' + Math.round((await navigator.storage.estimate()).quota / ${MEBIBYTE})
  }
})()</script>`

const browsersWith = (t: Test, room: DiskQuota) => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  mkdirSync(join(data, 'system'), { recursive: true })
  const told: string[] = []
  const log = { info: () => {}, warn: (message: string) => void told.push(message), error: () => {} }
  const browsers = new Browsers({
    place: {
      workspace,
      data,
      logs: '',
      folder: join(data, 'system'),
      root,
      hidden: [],
      grants: { read: [], write: [] },
      limits: {},
      previews: { host: '127.0.0.1' },
      publicPages: {},
    },
    log,
    signal: new AbortController().signal,
    listeners: async () => [],
    changed: () => {},
    room,
  })
  t.teardown(() => browsers.stop())
  /** The title of the first page once it is the one given, or what it is after 20 s. */
  const title = async (expected: string) => {
    for (let tries = 0; ; tries++) {
      const now = (await browsers.list())[0]?.pages[0]?.title
      if (now === expected || tries === 200) return now
      await delay(100)
    }
  }
  return { browsers, told, title, profile: (name: string) => join(data, 'system', 'browsers', 'profiles', name) }
}

/** Writes files with the given sizes in KiB. */
const filled = (folder: string, files: { readonly [path: string]: number }): void => {
  for (const [path, kibibytes] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), Buffer.alloc(kibibytes * 1024, 1))
  }
}

t.test('the disk use of a folder is measured, also of many empty files', async t => {
  const folder = t.testdir({})
  t.equal(await folderExceeds(join(folder, 'none'), 0), false)
  filled(folder, { 'a/b/c': 64 })
  t.same([await folderExceeds(folder, 60 * 1024), await folderExceeds(folder, 128 * 1024)], [true, false])
  for (let n = 0; n < 200; n++) writeFileSync(join(folder, `${n}`), '')
  t.equal(await folderExceeds(folder, 128 * 1024), true)
})

t.test('an oversized profile loses caches first, then the storage of pages, then everything', async t => {
  const folder = t.testdir({})
  const at = join(folder, 'profile', 'Default')
  const files = {
    'home/x': 100,
    'profile/Local State': 1,
    'profile/GPUPersistentCache/x': 100,
    'profile/Default/Cache/x': 100,
    'profile/Default/Cookies': 4,
    'profile/Default/Cookies-journal': 1,
  }
  filled(folder, { ...files, 'profile/Default/IndexedDB/x': 10 })
  t.equal(await fit(folder, 500 * 1024), undefined)
  t.ok(existsSync(join(at, 'Cache/x')), 'a profile within its quota is unchanged')
  t.match(await fit(folder, 200 * 1024), /recreates/)
  t.same(
    [readdirSync(folder), readdirSync(join(folder, 'profile')), readdirSync(at)],
    [['profile'], ['Default', 'Local State'], ['Cookies', 'Cookies-journal', 'IndexedDB']],
  )
  filled(folder, { 'profile/Default/IndexedDB/x': 300 })
  t.match(await fit(folder, 200 * 1024), /except cookies/)
  t.same(readdirSync(at), ['Cookies', 'Cookies-journal'])
  filled(folder, { 'profile/Default/Cookies': 300 })
  t.match(await fit(folder, 200 * 1024), /including sign-ins/)
  t.same(readdirSync(join(folder, 'profile')), [])
})

t.test('a page over its quota gets an error, and the browser continues', withChromium(), async t => {
  const { browsers, told, title } = browsersWith(t, { pages: 16 * MEBIBYTE, folder: 1024 * MEBIBYTE })
  const site = await siteOf(t, { '/little': keeping(4), '/much': keeping(64) })
  await browsers.open({ name: 'web-a', url: `${site.url}/little` })
  t.equal(await title('kept'), 'kept')
  await browsers.page({ name: 'web-a', action: 'goto', url: `${site.url}/much` })
  const refused = 'QuotaExceededError of 12'
  t.equal(await title(refused), refused, 'it also gets its quota')
  t.match(await browsers.page({ name: 'web-a', action: 'reload' }), { session: { running: true } })
  t.same(told, [])
})

t.test(
  'a browser whose pages fill the disk is closed, and its next use is refused with the reason',
  withChromium(),
  async t => {
    const { browsers, told } = browsersWith(t, { pages: 512 * MEBIBYTE, folder: 48 * MEBIBYTE })
    const site = await siteOf(t, { '/': '<title>Home</title>', '/much': keeping(64) })
    await browsers.open({ name: 'web-a', url: site.url })
    await browsers.page({ name: 'web-a', action: 'goto', url: `${site.url}/much` })
    await until(async () => (await browsers.list())[0]?.finishedAt !== undefined)
    await t.rejects(browsers.page({ name: 'web-a', action: 'back' }), {
      reason: 'conflict',
      message: /web-a is not running: it was closed because .* grew beyond 48 MiB; open another/,
    })
    t.match(told, exactly(/a browser was closed/))
    t.match(await browsers.open({ name: 'web-a', url: site.url }), { running: true }, 'the quota is free again')
  },
)

t.test('an oversized profile is trimmed at the next start, and keeps its sign-ins', withChromium(), async t => {
  const { browsers, told, title, profile } = browsersWith(t, { pages: 512 * MEBIBYTE, folder: 48 * MEBIBYTE })
  const site = await siteOf(t, {
    '/': (request, response) =>
      void response
        .writeHead(200, { 'content-type': 'text/html', 'set-cookie': 'who=ada; Max-Age=9999' })
        .end(`<title>${request.headers.cookie ?? 'nobody'}</title>`),
  })
  const open = async (name: string, expected: string) => {
    await browsers.open({ name, profile: 'mail', url: site.url })
    t.equal(await title(expected), expected)
  }
  await open('one', 'nobody')
  await browsers.end('one')
  filled(profile('mail'), { 'profile/Default/Cache/Cache_Data/f_000001': 64 * 1024 })
  await open('two', 'who=ada')
  t.notOk(existsSync(join(profile('mail'), 'profile/Default/Cache/Cache_Data/f_000001')))
  t.match(told, exactly(/a profile of a browser took more than 48 MiB: removed files that the browser recreates/))
})
