import type { OAuthLogin } from '../../../plugins/capabilities/contract.js'
import t, { type Test } from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { withChromium } from '../../support/browser/browser.js'
import { launchBrowser } from '../../support/browser/console.js'
import type { Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { signedInServer } from '../../support/servers/signed-in-server.js'
import { resultOf, TURN } from './servers-support.js'
import { add, capabilitiesDaemon, inner } from './support.js'

/** Signs in as a browser does; answers the address it is sent to at the end, which is not visited. */
const browse = async (start: string, redirect: string): Promise<string> => {
  const cookies = new Map<string, string>()
  const visit = async (url: string, form?: { [field: string]: string }): Promise<string> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie },
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
    })
    for (const set of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      cookies.set(name, value)
    }
    const next = response.headers.get('location')
    if (!next) throw new Error(`${response.status} ${await response.text()}`)
    return new URL(next, url).href
  }
  let at = await visit(start)
  while (!at.startsWith(redirect)) {
    const consents = cookies.has('_session')
    at = at.includes('/interaction/')
      ? await visit(at, consents ? { prompt: 'consent' } : { prompt: 'login', login: 'ada', password: 'any' })
      : await visit(at)
  }
  return at
}

const connected = async (t: Test, ttl?: number, namesIssuer?: boolean) => {
  const { daemon, vault } = await capabilitiesDaemon(t)
  const server = await signedInServer(t, ttl, namesIssuer)
  const frames = await add(daemon, { id: 'guarded', kind: 'mcp', config: { url: server.url } })
  t.match(frames.at(-1), { kind: 'result', status: { state: 'pending', code: 'sign-in' } })
  return { daemon, vault, server }
}
const login = async (daemon: Support): Promise<OAuthLogin> => {
  const started = await daemon.client.call('POST /capabilities/{id}/login', { id: 'guarded' })
  if (started.kind !== 'oauth') throw new Error(`expected a sign-in at a server, found one of ${started.kind}`)
  return started
}
const status = (daemon: Support) => daemon.client.call('GET /capabilities/{id}/status', { id: 'guarded' })
const who = { server: 'guarded', name: 'who', input: {} }

t.test('a person signs in, and the tools are there', async t => {
  const { daemon, vault, server } = await connected(t)
  t.match(await inner(daemon, 'mcp.tools', TURN), { tools: exactly(), problems: exactly(/asks to sign in/) })
  const { url, redirect } = await login(daemon)
  const { searchParams } = new URL(url)
  t.equal(searchParams.get('code_challenge_method'), 'S256')
  t.equal(searchParams.get('resource'), server.url)
  t.equal(Buffer.from(searchParams.get('state') ?? '', 'base64url').length, 32)
  const back = await browse(url, redirect)
  const page = await fetch(back)
  t.equal(page.status, 200)
  t.match(await page.text(), /You are signed in/)
  t.match(await status(daemon), { state: 'active' })
  t.match(await resultOf(daemon, { ...who, run: 'r-2' }), { ok: true, text: 'you' })
  t.same([...vault.values.keys()], ['guarded/oauth'])
  const again = await fetch(back)
  t.equal(again.status, 400)
  const shown = JSON.stringify([await daemon.client.call('GET /capabilities'), daemon.logged])
  t.ok(server.accepted.length > 0 && server.accepted.every(token => !shown.includes(token)))
  t.same(await daemon.client.call('DELETE /capabilities/{id}', { id: 'guarded' }), { ok: true })
  t.equal(vault.values.size, 0)
})

t.test('a person signs in with a browser, whose sign-in is good for no second use', withChromium(), async t => {
  const { daemon, vault, server } = await connected(t)
  const browser = await launchBrowser(t)
  const page = await browser.newPage()
  const { url, redirect } = await login(daemon)
  await page.goto(url)
  await page.fill('[name=login]', 'ada')
  await page.fill('[name=password]', 'any')
  await page.click('[type=submit]')
  t.notOk(page.url().startsWith(redirect), 'it asks for consent')
  await Promise.all([page.waitForURL(`${redirect}?*`), page.click('[type=submit]')])
  t.match(await page.textContent('body'), /You are signed in/)
  t.same(await page.locator('script').count(), 0)
  t.match(await status(daemon), { state: 'active' })
  t.match(await resultOf(daemon, who), { ok: true, text: 'you' })
  const shown = page.url() + (await page.content())
  t.ok(server.accepted.length > 0 && server.accepted.every(token => !shown.includes(token)), 'the page has no token')
  t.equal((await page.reload())?.status(), 400)
  t.match(await page.textContent('body'), /^The sign-in failed.*it is done, has expired, or was never begun/)
  t.match(await status(daemon), { state: 'active' })

  const other = await login(daemon)
  const forged = new URL(other.redirect)
  forged.search = new URLSearchParams({ state: 'x', code: 'stolen' }).toString()
  const refused = await page.goto(forged.href)
  t.same([refused?.status(), refused?.headers()['content-type']], [400, 'text/html; charset=utf-8'])
  t.same([...vault.values.keys()], ['guarded/oauth'])
})

t.test('a token that ends is refreshed without a person, and a revoked sign-in asks for one', async t => {
  const { daemon, server } = await connected(t, 61)
  const { url, redirect } = await login(daemon)
  t.equal((await fetch(await browse(url, redirect))).status, 200)
  await new Promise(resolve => setTimeout(resolve, 1500))
  const before = server.accepted.at(-1)
  t.match(await status(daemon), { state: 'active' })
  t.not(server.accepted.at(-1), before)
  for (const jti of server.refreshTokens) await (await server.provider.RefreshToken.find(jti))?.destroy()
  await new Promise(resolve => setTimeout(resolve, 1500))
  t.match(await status(daemon), { state: 'pending', code: 'sign-in' })
  t.match(await resultOf(daemon, who), { ok: false })
})

t.test('a sign-in is completed by hand, or abandoned', async t => {
  const { daemon, vault } = await connected(t)
  const { url, redirect, handshake } = await login(daemon)
  const finish = (body: object) =>
    daemon.client.call('POST /capabilities/{id}/login/finish', { id: 'guarded', handshake, ...body })
  const redirectUrl = await browse(url, redirect)
  const code = new URL(redirectUrl).searchParams.get('code')!
  for (const body of [
    {},
    { code, redirectUrl },
    { redirectUrl: redirectUrl.replace(/state=[^&]+/, 'state=x') },
    { code },
  ])
    t.match(await refusalOf(() => finish(body)), { status: 400 }, Object.keys(body).join())
  t.match(await refusalOf(() => finish({ handshake: 'x', code })), { status: 404 })
  t.equal(vault.values.size, 0)
  t.match(await finish({ redirectUrl }), { ok: true, status: { state: 'active' } })
  t.match(await finish({ redirectUrl }), { ok: true, status: { state: 'active' } })
  const other = await login(daemon)
  t.match(await finish({ handshake: other.handshake, cancel: true }), { ok: true })
  t.match(await refusalOf(() => finish({ handshake: other.handshake, code })), { status: 404 })
})

t.test('a code alone completes a sign-in where the server does not say that its answers name it', async t => {
  const { daemon } = await connected(t, undefined, false)
  const { url, redirect, handshake } = await login(daemon)
  const code = new URL(await browse(url, redirect)).searchParams.get('code')!
  const finished = await daemon.client.call('POST /capabilities/{id}/login/finish', { id: 'guarded', handshake, code })
  t.match(finished, { ok: true, status: { state: 'active' } })
  t.match(await resultOf(daemon, who), { ok: true, text: 'you' })
})

t.test(
  'signing in is refused without a credential, with a token, and where there is nothing to sign in to',
  async t => {
    const { daemon } = await capabilitiesDaemon(t)
    const { token } = await daemon.token('land')
    for (const path of ['/capabilities/x/login', '/capabilities/x/login/finish']) {
      const body = JSON.stringify({ handshake: 'h', cancel: true })
      const headers = { 'content-type': 'application/json' }
      t.equal((await fetch(daemon.url + path, { method: 'POST', body, headers })).status, 401)
      const controlled = { ...headers, 'x-sandbox-control': token }
      t.equal((await fetch(daemon.url + path, { method: 'POST', body, headers: controlled })).status, 403)
      t.equal((await daemon.fetch(path, { method: 'POST', body })).status, 404)
    }
    await add(daemon, { id: 'x', kind: 'cli', config: { provider: 'github', token: 'abc' } })
    t.equal((await daemon.fetch('/capabilities/x/login', { method: 'POST', body: '{}' })).status, 409)
    t.equal((await daemon.fetch('/capabilities/x/login', { method: 'POST', body: '{"kind":"dance"}' })).status, 400)
  },
)

t.test('states that nobody waits for are refused, and then not looked at', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  const callback = (query: string) => fetch(`${daemon.url}/capabilities/oauth/callback${query}`)
  t.equal((await callback('')).status, 400)
  for (let at = 0; at < 30; at++) t.equal((await callback(`?state=s-${at}&code=c`)).status, 400)
  t.equal((await callback('?state=s&code=c')).status, 429)
})
