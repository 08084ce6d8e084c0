import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Bytes } from '../../sdk/contract.js'
import type { Boot } from '../boot.js'
import type { Identity } from '../contract.js'
import type { LoadedPlugin } from '../loader.js'
import type { App } from './app.js'

/** The builders of the document and of its page: read when somebody first asks, since few do. */
interface Publishers {
  readonly document: { openapi(groups: readonly LoadedPlugin[]): object }
  readonly reference: { referencePage(document: object): { html: string; css: string; js: string } }
}

const PAGE_POLICY = "default-src 'none'; style-src 'self'; script-src 'self'; frame-ancestors 'none'"

/** Serves what the kernel answers itself, to anybody: the health of the daemon, its document, and a page to read it on. */
export const serveOwn = (app: App, root: string, identity: Identity, boot: Boot, plugins: readonly LoadedPlugin[]): void => {
  const load = <P extends keyof Publishers>(name: P) =>
    import(pathToFileURL(join(root, 'openapi', `${name}.js`)).href) as Promise<Publishers[P]>
  const document = once(async () => (await load('document')).openapi(plugins))
  const page = once(async () => (await load('reference')).referencePage(await document()))

  app.own('/health', ({ ownHost }) =>
    ownHost ? { ok: true, sandboxId: identity.sandboxId, ready: boot.progress().ready } : { ok: true })
  app.own('/openapi.json', async () => tagged('application/json', JSON.stringify(await document(), undefined, 2)))
  app.own('/reference', async () => tagged('text/html', (await page()).html, { 'content-security-policy': PAGE_POLICY }))
  app.own('/reference/style.css', async () => tagged('text/css', (await page()).css))
  app.own('/reference/script.js', async () => tagged('text/javascript', (await page()).js))
}

const once = <T>(make: () => Promise<T>): (() => Promise<T>) => {
  let made: Promise<T> | undefined
  return () => (made ??= make())
}

const tagged = (type: string, data: string, headers: { readonly [name: string]: string } = {}): Bytes => ({
  'content-type': `${type}; charset=utf-8`,
  data,
  headers: { ...headers, etag: `"${createHash('sha256').update(data).digest('base64url').slice(0, 22)}"`, 'cache-control': 'no-cache' },
})
