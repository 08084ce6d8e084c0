import { createHash } from 'node:crypto'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { request } from 'node:http'
import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'
import type { IncomingMessage } from 'node:http'
import t from 'tap'
import { project } from '../../support/browser/page.js'
import { daemonWith, root } from '../../support/daemon.js'

const BUILT = join(root, 'bundle/console')

interface Sent {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

/** A plain request, whose answer is not decompressed on the way. */
const get = async (url: string, headers: { [name: string]: string } = {}): Promise<Sent> => {
  const sent = request(url, { headers, agent: false }).end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return { status: answer.statusCode!, headers: answer.headers, body: await buffer(answer) }
}

t.test('the page and its files', async t => {
  const { url } = await daemonWith(t, ['console', 'system'])
  const page = await get(url)
  const text = page.body.toString()
  const [script = ''] = /\/console\/main-\w+\.js/.exec(text) ?? []

  t.test('the page is for everybody and says by its policy that it loads nothing from elsewhere', async t => {
    t.equal(page.status, 200)
    t.equal(page.headers['content-type'], 'text/html; charset=utf-8')
    const policy = String(page.headers['content-security-policy'])
    t.equal(
      policy,
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        + `media-src 'self'; connect-src 'self' ${url.replace('http', 'ws')}; `
        + "frame-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; "
        + "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        + 'trusted-types console',
    )
    t.notMatch(text, /https?:|style="|onclick|<script>/)
  })

  t.test('everything the page names is there', async t => {
    const named = [...text.matchAll(/(?:href|src)="(\/[^"]*)"/g)].map(([, path]) => path!)
    t.equal(named.length, 3)
    for (const path of named) t.equal((await get(url + path)).status, 200, path)
  })

  t.test('the frame of extensions runs one script and loads nothing, with any opener', async t => {
    const frame = await get(`${url}/console/frame.html`)
    t.equal(frame.status, 200)
    t.equal(frame.headers['content-type'], 'text/html; charset=utf-8')
    const [, script] = /<script>([^]*)<\/script>/.exec(frame.body.toString())!
    t.equal(
      frame.headers['content-security-policy'],
      `default-src 'none'; script-src 'sha256-${createHash('sha256').update(script!).digest('base64')}' blob:; `
        + "style-src 'unsafe-inline'; img-src blob: data:; media-src blob: data:; font-src data:; base-uri 'none'; "
        + "form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts",
    )
    t.equal((await get(`${url}/console/frame.html`, { 'if-none-match': String(frame.headers.etag) })).status, 304)
    t.equal((await get(`${url}/console/index.html`)).status, 404)
  })

  t.test('a page that did not change is not sent again', async t => {
    const { status, body } = await get(url, { 'if-none-match': String(page.headers.etag) })
    t.equal(status, 304)
    t.equal(body.length, 0)
  })

  t.test('a file is compressed as the client accepts, and never asked for again', async t => {
    const plain = await get(url + script)
    t.equal(plain.headers['content-encoding'], undefined)
    t.equal(plain.headers['content-type'], 'text/javascript; charset=utf-8')
    t.equal(plain.headers['cache-control'], 'public, max-age=31536000, immutable')
    const gzip = await get(url + script, { 'accept-encoding': 'gzip, br;q=0' })
    t.equal(gzip.headers['content-encoding'], 'gzip')
    t.ok(gunzipSync(gzip.body).equals(plain.body))
    const brotli = await get(url + script, { 'accept-encoding': 'gzip, deflate, br' })
    t.equal(brotli.headers['content-encoding'], 'br')
    t.ok(brotliDecompressSync(brotli.body).equals(plain.body))
    t.match(brotli.headers.vary, /Accept-Encoding/)
  })

  t.test('the service worker is looked for anew, and may load nothing', async t => {
    const worker = await get(`${url}/console/service-worker.js`)
    t.equal(worker.headers['content-type'], 'text/javascript; charset=utf-8')
    t.equal(worker.headers['cache-control'], 'no-cache')
    t.equal(worker.headers['content-security-policy'], "default-src 'none'")
  })

  t.test('only files of the console are served below /console', async t => {
    for (const file of [
      'main.js',
      'index.html',
      'outputs.json',
      'main-AAAAAAAA.js',
      '..%2fplugin.js',
      `${'a'.repeat(121)}.js`,
    ])
      t.match(String((await get(`${url}/console/${file}`)).status), /^40[04]$/, file)
    t.equal((await get(`${url}/console/a/b.js`)).status, 404)
  })
})

t.test('the console asks for the ways to sign in and for no other call', t => {
  const { permissions } = JSON.parse(readFileSync(join(project, 'manifests', 'console.json'), 'utf8')) as {
    permissions: object
  }
  t.same(permissions, { daemon: [], late: ['GET /system/sign-in'] })
  t.end()
})

t.test('an address gets 600 pages a minute', async t => {
  const { url } = await daemonWith(t, ['console', 'system'])
  const statuses = new Set<number>()
  for (let times = 0; times < 600; times += 50)
    for (const { status } of await Promise.all(Array.from({ length: 50 }, () => get(url)))) statuses.add(status)
  t.strictSame([...statuses], [200])
  const refused = await get(url)
  t.equal(refused.status, 429)
  t.ok(Number(refused.headers['retry-after']) > 0)
})

/** Limits in bytes of gzip. */
const KB = 1000
const BUDGETS = {
  ...{ initial: 80 * KB, css: 15 * KB, editor: 130 * KB, terminal: 95 * KB, grammar: 36 * KB, highlighter: 20 * KB },
}

t.test('scripts and styles stay within their budgets', async t => {
  const outputs = JSON.parse(readFileSync(join(BUILT, 'outputs.json'), 'utf8')) as {
    [file: string]: { entryPoint?: string; imports: { path: string; kind: string }[] }
  }
  const sizeOf = (file: string) => readFileSync(`${file}.gz`).length
  const withImports = (file: string, seen = new Set<string>()): Set<string> => {
    if (seen.has(file)) return seen
    seen.add(file)
    for (const { path, kind } of outputs[file]!.imports) if (kind === 'import-statement') withImports(path, seen)
    return seen
  }
  const entryOf = (name: string) => Object.keys(outputs).find(file => outputs[file]!.entryPoint?.endsWith(name))!
  const initial = ['main.tsx', 'fleet-page.tsx', 'conversation-page.tsx', 'review-page.tsx'].reduce(
    (all, name) => withImports(entryOf(name), all),
    new Set<string>(),
  )
  const bytes = [...initial].reduce((sum, file) => sum + sizeOf(file), 0)
  t.ok(bytes < BUDGETS.initial, `fleet, conversation and review need ${bytes} bytes of script`)
  t.ok(initial.size < 20, `they come in ${initial.size} files`)
  t.ok(sizeOf(entryOf('main.css')) < BUDGETS.css)
  /** What is loaded for a part that the page does not begin with. */
  const laterFor = (...names: string[]): number =>
    [...names.reduce((all, name) => withImports(entryOf(name), all), new Set<string>())]
      .filter(file => !initial.has(file))
      .reduce((sum, file) => sum + sizeOf(file), 0)
  const parts = [
    ['the terminal', laterFor('terminals/screen.ts'), BUDGETS.terminal],
    ['the highlighter', laterFor('ui/code/colouring.ts'), BUDGETS.highlighter],
    ['the editor with the comparison', laterFor('ui/code/code-editor.ts', 'ui/code/diff-editor.ts'), BUDGETS.editor],
  ] as const
  for (const [part, size, budget] of parts) t.ok(size < budget, `${part} needs ${size} bytes`)
  const grammars = Object.keys(outputs).filter(file => /@lezer\/[a-z]+\/dist/.test(outputs[file]!.entryPoint ?? ''))
  t.ok(grammars.length > 5)
  for (const file of grammars) t.ok(sizeOf(file) < BUDGETS.grammar, file)
  for (const file of readdirSync(BUILT).filter(name => name.endsWith('.js')))
    t.ok(readFileSync(join(BUILT, `${file}.gz`)).length < BUDGETS.editor, file)
})
