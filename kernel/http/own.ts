import { createHash } from 'node:crypto'
import type { Bytes } from '../../sdk/contract.js'
import type { Boot } from '../boot.js'
import type { Identity } from '../contract.js'
import type { App } from './app.js'
import { referencePage } from './reference.js'

/** Serves what the kernel answers itself, to anybody: the health of the daemon, its document, and a page to read it on. */
export const serveOwn = (app: App, identity: Identity, boot: Boot, describe: () => Promise<object>): void => {
  let document: Promise<Bytes> | undefined
  let page: Promise<ReturnType<typeof referencePage>> | undefined
  const read = () => (page ??= describe().then(described => referencePage(described as never)))

  app.own('/health', ({ ownHost }) =>
    ownHost ? { ok: true, sandboxId: identity.sandboxId, ready: boot.progress().ready } : { ok: true })
  app.own('/openapi.json', () => (document ??= describe().then(described => tagged('application/json; charset=utf-8', JSON.stringify(described, undefined, 2)))))
  app.own('/reference', async () => {
    const { html } = await read()
    return { ...tagged('text/html; charset=utf-8', html, { 'content-security-policy': "default-src 'none'; style-src 'self'; script-src 'self'; frame-ancestors 'none'" }) }
  })
  app.own('/reference/style.css', async () => tagged('text/css; charset=utf-8', (await read()).css))
  app.own('/reference/script.js', async () => tagged('text/javascript; charset=utf-8', (await read()).js))
}

const tagged = (type: string, data: string, headers: { readonly [name: string]: string } = {}): Bytes => ({
  'content-type': type,
  data,
  headers: { ...headers, etag: `"${createHash('sha256').update(data).digest('base64url').slice(0, 22)}"`, 'cache-control': 'no-cache' },
})
