import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { once } from './once.js'
import { tagged } from './tagged.js'
import type { Boot } from '../boot.js'
import type { SandboxIdentity } from '../storage/identity.js'
import { describedGroups, type DescribedGroup } from './describe.js'
import type { Group } from '../group.js'
import type { App } from './app.js'

interface Page {
  readonly html: string
  readonly css: string
  readonly js: string
  /** Its Content-Security-Policy. */
  readonly policy: string
}

/**
 * The modules that build the document and the pages; loaded on the first request, since most daemons never need them.
 */
interface Publishers {
  readonly document: { openapi(groups: readonly DescribedGroup[]): object }
  readonly reference: { referencePage(document: object): Page }
}

/**
 * Adds the kernel's own routes, which need no credential: health, the document and its reference page.
 */
export const serveOwn = (
  app: App,
  root: string,
  identity: SandboxIdentity,
  boot: Boot,
  groups: readonly Group[],
): void => {
  const load = <P extends keyof Publishers>(name: P) =>
    import(pathToFileURL(join(root, 'openapi', `${name}.js`)).href) as Promise<Publishers[P]>
  const document = once(async () => (await load('document')).openapi(await describedGroups(groups)))
  const reference = once(async () => (await load('reference')).referencePage(await document()))

  app.own('/health', ({ ownHost }) =>
    ownHost ? { ok: true, sandboxId: identity.sandboxId, ready: boot.progress().ready } : { ok: true },
  )
  app.own('/openapi.json', async () => tagged('application/json', JSON.stringify(await document(), undefined, 2)))
  app.own('/reference', async () =>
    tagged('text/html', (await reference()).html, { 'content-security-policy': (await reference()).policy }),
  )
  app.own('/reference/style.css', async () => tagged('text/css', (await reference()).css))
  app.own('/reference/script.js', async () => tagged('text/javascript', (await reference()).js))
}
