import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { exactly } from '../../support/lists.js'
import { approvePending, daemonWithBackends, eraseExtension, listedUntil, writeExtension } from './support.js'

const daemon = await daemonWithBackends(t)
const { client } = daemon
const PATH = '/extensions/ada.paged/bundle'
const MANIFEST = { publisher: 'ada', name: 'paged', version: '0.1.0', entry: 'page.ts' }
/** Writes the extension with this page, and approves that it shows one. */
const paged = async (code: string): Promise<string> => {
  const folder = writeExtension(daemon, 'paged', MANIFEST, { 'page.ts': code })
  if (!(await client.call('GET /extensions')).extensions.some(({ id }) => id === 'ada.paged')) {
    await listedUntil(daemon, ({ pending }) => pending.find(({ id }) => id === 'ada.paged'))
    await approvePending(daemon, 'ada.paged')
  }
  await listedUntil(daemon, ({ extensions }) => extensions.find(({ id }) => id === 'ada.paged'))
  return folder
}

t.test('the code of a page needs a credential of people or programs that may read', async t => {
  t.equal((await fetch(daemon.url + PATH)).status, 401)
  const { client: editor } = await daemon.token('editor')
  t.match(await refusalOf(() => editor.call('GET /extensions/{id}/bundle', { id: 'ada.paged' })), { status: 403 })
})

t.test('an id that is malformed or unknown, and an extension without a page, are refused', async t => {
  t.equal((await daemon.fetch('/extensions/..%2f..%2fetc/bundle')).status, 404)
  t.equal((await daemon.fetch('/extensions/ada.none/bundle')).status, 404)
  t.equal((await daemon.fetch('/extensions/sandbox.extensions/bundle')).status, 404)
})

t.test('TypeScript arrives as JavaScript with the same lines, and unchanged code is not sent again', async t => {
  await paged('interface A { n: number }\nexport const a: A = { n: 1 }\n')
  const first = await daemon.fetch(PATH)
  t.equal(first.headers.get('content-type'), 'text/javascript; charset=utf-8')
  t.match((await first.text()).split('\n'), exactly(/^ *$/, 'export const a    = { n: 1 }', ''))
  const etag = first.headers.get('etag')!
  t.equal((await daemon.fetch(PATH, { headers: { 'if-none-match': etag } })).status, 304)
})

t.test('types that cannot be erased are named, and a link out of the folder shows nothing', async t => {
  const folder = await paged('export enum Kind { a }\n')
  const asked = refusalOf(() => client.call('GET /extensions/{id}/bundle', { id: 'ada.paged' }))
  t.match(await asked, { status: 422, message: /^page\.ts: .*enum/ })
  eraseExtension(daemon, 'paged')
  writeExtension(daemon, 'paged', MANIFEST)
  symlinkSync('/etc/passwd', join(folder, 'page.ts'))
  t.equal((await daemon.fetch(PATH)).status, 404)
})

t.test('the page of an extension that is switched off is not sent', async t => {
  eraseExtension(daemon, 'paged')
  await paged('export {}\n')
  t.equal((await daemon.fetch(PATH)).status, 200)
  await client.call('POST /extensions/{id}/enabled', { id: 'ada.paged', enabled: false })
  t.equal((await daemon.fetch(PATH)).status, 404)
})
