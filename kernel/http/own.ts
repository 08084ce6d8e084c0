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
  readonly welcome: { welcomePage(): Page }
}

/**
 * Adds the kernel's own routes, which need no credential: health, the document, its reference page and the sign-in
 * page.
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
  const page = (at: string, files: string, make: () => Promise<Page>) => {
    const made = once(make)
    app.own(at, async () =>
      tagged('text/html', (await made()).html, { 'content-security-policy': (await made()).policy }),
    )
    app.own(`${files}/style.css`, async () => tagged('text/css', (await made()).css))
    app.own(`${files}/script.js`, async () => tagged('text/javascript', (await made()).js))
  }

  app.own('/health', ({ ownHost }) =>
    ownHost ? { ok: true, sandboxId: identity.sandboxId, ready: boot.progress().ready } : { ok: true },
  )
  app.own('/openapi.json', async () => tagged('application/json', JSON.stringify(await document(), undefined, 2)))
  page('/reference', '/reference', async () => (await load('reference')).referencePage(await document()))
  page('/', '/welcome', async () => (await load('welcome')).welcomePage())
}
