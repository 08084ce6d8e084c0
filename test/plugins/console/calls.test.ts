import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { project } from '../../support/browser/page.js'

interface PublishedDocument {
  readonly paths: { readonly [path: string]: { readonly [method: string]: object } }
}

/** Why the console does not make calls, by what their routes begin with. */
const REASONS: readonly (readonly [route: string, reason: string])[] = [
  ['GET /', 'the browser asks for it'],
  ['GET /console/{file}', 'the browser asks for it'],
  ['GET /extensions/{id}/bundle', 'the frame of a page gets it, by an address that names the extension'],
  ['GET /health', 'for programs that watch the daemon'],
  ['GET /s/{id}/{path}', 'people who have the address of a shared page open it'],
  ['GET /p/{slot}/{path}', 'people who have the address of a published file open it'],
  ['GET /bundles/download', 'the browser asks for it, by an address with a ticket'],
  ['GET /capabilities/oauth/callback', 'a provider sends the browser there'],
  ['GET /agents', 'the event stream has the board'],
  ['POST /settings', 'the page changes single settings, so that it overwrites nobody else’s'],
  ['GET /providers/{provider}/models', 'the list of all models has them'],
  ['GET /secrets', 'the inventory has these names, and more of each'],
  ['GET /system/subagents', 'the transcript shows subagents'],
  ['GET /system/terminals/{name}/scrollback', 'the socket sends what a terminal showed'],
  ['GET /agent/commands', 'frames of the run name the commands'],
  ['GET /agent/refusals', 'the transcript has each refusal'],
  ['POST /agent/switch-account', 'for programs: the options of the next message move a conversation'],
  ['GET /accounts/{provider}/limits', 'the list of accounts shows how full each is'],
  ['GET /{provider}/', 'for older clients: the page uses the calls below /accounts'],
  ['POST /{provider}/', 'for older clients: the page uses the calls below /accounts'],
  ['GET /drafts', 'for older clients: the page uses the approvals'],
  ['POST /drafts', 'for older clients: the page uses the approvals'],
  ['DELETE /drafts/{id}', 'for older clients: the page uses the approvals'],
  ['POST /agents/{id}/place', 'for editors that write into a private copy'],
  ['POST /ingest/', 'programs report their failures there'],
  ['POST /ci/webhook/{host}', 'forges report there, with a proof of their own'],
  ['POST /automations/{id}/fire', 'programs outside call it, with a token of its own'],
  ['GET /webchat/', 'pages of other sites call it, for their visitors'],
  ['POST /webchat/', 'pages of other sites call it, for their visitors'],
  ['POST /workflows/{id}/gate', 'programs outside call it, with a token of its own'],
  ['GET /panels', 'the page shows the panel of one repository'],
  ['POST /needs', 'agents and programs raise needs'],
  ['GET /areas/', 'the list of areas has all of this'],
  ['POST /areas/{id}/holders', 'the page sets the areas of each member instead'],
  ['GET /capabilities/{id}/connection', 'extensions that may use a connection ask for it'],
  ['POST /capabilities/marketplace', 'no page yet: extensions are installed by their address'],
  ['GET /endpoints/', 'the list of servers has what the page shows'],
  ['POST /endpoints/local-model/', 'a model is fetched when it is added'],
  ['POST /disks/probe', 'connecting a share asks its server already'],
  ['GET /diff/documents', 'the lists of changed files name documents already'],
  ['GET /git/{repo}/status', 'a short answer for scripts: the page shows the changes themselves'],
  ['GET /git/{repo}/files', 'the page Files shows the tree'],
  ['POST /git/{repo}/publish-file', 'writes, commits and pushes in one call, for programs'],
  ['GET /workspace/download', 'the browser asks for it, by an address with a ticket'],
  ['GET /workspace/media', 'the browser asks for it, by an address with a ticket'],
  ['GET /workspace/classify', 'sorts loose files for programs; no page sorts them yet'],
  ['GET /workspace/health', 'ranks files for agents; no page yet'],
  ['GET /workspace/modules', 'groups files of reviews, whose answers name them already'],
  ['POST /workspace/upload-archive', 'a folder as one tar: browsers make none, the page sends its files'],
]

/** Whether a reason is about a route: the route itself, or everything below it. */
const isAbout = (reason: string, route: string): boolean =>
  route === reason || route.startsWith(`${reason}/`) || (reason.endsWith('/') && route.startsWith(reason))

t.test('every published call is made by the console, or there is a reason why not', async t => {
  const { paths } = JSON.parse(readFileSync(join(project, 'openapi', 'openapi.json'), 'utf8')) as PublishedDocument
  const published = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods)
      .filter(method => /^(?:get|post|put|patch|delete)$/.test(method))
      .map(method => `${method.toUpperCase()} ${path}`),
  )
  const sources = globSync(join(project, 'plugins/console/web/**/*.{ts,tsx}')).map(file => readFileSync(file, 'utf8'))
  const text = sources.join('\n')
  // Sockets and links name the path alone.
  const made = (route: string): boolean => {
    const path = route.replace(/^GET /, '')
    return text.includes(`'${route}'`) || ["'", '"'].some(quote => text.includes(quote + path + quote))
  }
  const unused = published.filter(route => !made(route))
  const unexplained = unused.filter(route => !REASONS.some(([reason]) => isAbout(reason, route)))
  t.same(unexplained, [], 'build its page, or say in this file why there is none')
  const idle = REASONS.filter(([reason]) => !unused.some(route => isAbout(reason, route)))
  t.same(idle, [], 'these reasons are about nothing any more')
})

t.test('a key of kept answers stands for one call', t => {
  const asked =
    /\b(?:useQuery|watchQuery)\(\s*('[^']+'|`[^`]+`),\s*\[[^\]]*\],\s*(?:\(\) =>\s*askDaemon\(('[^']+')|(\w+))/g
  const calls = new Map<string, string>()
  for (const file of globSync(join(project, 'plugins/console/web/**/*.{ts,tsx}')))
    for (const [, key, route, reader] of readFileSync(file, 'utf8').matchAll(asked)) {
      const call = route ?? `${file} ${reader}`
      t.equal(calls.get(key!) ?? call, call, `another page would get the answer of the wrong call under ${key}`)
      calls.set(key!, call)
    }
  t.ok(calls.size > 40)
  t.end()
})
