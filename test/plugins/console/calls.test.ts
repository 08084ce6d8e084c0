import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { project } from '../../support/page.js'

interface PublishedDocument {
  readonly paths: { readonly [path: string]: { readonly [method: string]: object } }
}

/** Why the console does not make calls, by what their routes begin with. */
const REASONS: readonly (readonly [route: string, reason: string])[] = [
  ['GET /', 'the browser asks for it'],
  ['GET /console/{file}', 'the browser asks for it'],
  ['GET /extensions/{id}/bundle', 'the frame of a page gets it, by an address that names the extension'],
  ['GET /health', 'for programs that watch the daemon'],
  ['GET /bundles/download', 'the browser asks for it, by an address with a ticket'],
  ['GET /capabilities/oauth/callback', 'a provider sends the browser there'],
  ['GET /agents', 'the event stream has the board'],
  ['POST /settings', 'the page changes single settings, so that it overwrites nobody else’s'],
  ['GET /secrets', 'the inventory has these names, and more of each'],
  ['POST /secrets/import', 'reads a file of the machine: the command line does that'],
  ['POST /system/presence', 'no page shows who looks at what yet'],
  ['DELETE /members/self', 'no page yet: an owner removes members on the page Access'],
  ['GET /system/subagents', 'the transcript shows subagents'],
  ['GET /system/terminals/{name}/scrollback', 'the socket sends what a terminal showed'],
  ['GET /agent/commands', 'frames of the run name the commands'],
  ['GET /agent/refusals', 'the transcript has each refusal'],
  ['POST /agent/switch-account', 'there are no accounts of providers to switch between yet'],
  ['POST /agents/purge', 'deletes for good: the command line asks twice'],
  ['POST /agents/{id}/auto-land', 'no control on the page yet'],
  ['POST /agents/{id}/place', 'for editors that write into a private copy'],
  ['POST /agents/{id}/rename', 'no control on the page yet'],
  ['POST /agents/{id}/resume-after-outage', 'no control on the page yet'],
  ['GET /areas/', 'the list of areas has all of this'],
  ['POST /areas/{id}/holders', 'the page sets the areas of each member instead'],
  ['GET /capabilities/', 'no page yet: connections of other kinds come with their own'],
  ['POST /capabilities/{id}/', 'no page yet: connections of other kinds come with their own'],
  ['GET /endpoints/', 'the list of servers has what the page shows'],
  ['POST /endpoints/local-model/', 'no page yet: local models'],
  ['GET /providers/', 'a turn takes the default model; choosing one has no page yet'],
  ['GET /sessions', 'no page yet: past sessions of agent programs'],
  ['DELETE /sessions/', 'no page yet: past sessions of agent programs'],
  ['GET /git/', 'stage two: the page for git'],
  ['POST /git/', 'stage two: the page for git'],
  ['PUT /git/', 'stage two: the page for git'],
  ['GET /history/', 'stage two: the page for saved points'],
  ['POST /history/', 'stage two: the page for saved points'],
  ['GET /workspace/', 'stage two: the page for files'],
  ['POST /workspace/', 'stage two: the page for files'],
  ['PUT /workspace/', 'stage two: the page for files'],
  ['DELETE /workspace/', 'stage two: the page for files'],
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
