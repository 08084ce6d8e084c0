import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import type { ApplyFrame } from '../../../plugins/capabilities/contract.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { inner } from '../agent/support.js'
import { between, siteOf, until, withChromium, withoutWindows } from '../../support/browser/browser.js'
import type { Client } from '../../../sdk/client.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { modelServer, type ScriptedAnswer, type SeenBody } from '../../support/servers/model-server.js'
import { runTurn } from '../../support/turns.js'

withoutWindows(t)
const PASSWORD = 'correct-horse-0815'
const SEED = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'
/** What was sent to the site's form. */
const sent: string[] = []
const site = await siteOf(t, {
  '/': (request, response) => {
    const { cookie = '' } = request.headers
    response.writeHead(200, { 'content-type': 'text/html' })
    response.end(
      cookie.includes('who=ada')
        ? '<title>Inbox</title><p>Inbox of ada'
        : '<title>Sign in</title><form action="/in"><input aria-label="Secret" name="q"><button>Go</button></form>',
    )
  },
  '/mark': (request, response) => {
    const { cookie = '' } = request.headers
    const mark = new URL(request.url!, 'http://x').searchParams.get('by')
    response.writeHead(200, {
      'content-type': 'text/html',
      ...(mark !== null && { 'set-cookie': `${mark}=1; Max-Age=9999` }),
    })
    response.end(`<title>Mark</title><p>Cookies: ${cookie.split('; ').sort().join(' ')}.`)
  },
  '/in': (request, response) => {
    sent.push(new URL(request.url!, 'http://x').searchParams.get('q') ?? '')
    response.writeHead(302, { location: '/', 'set-cookie': 'who=ada; Max-Age=9999' }).end()
  },
})
const fieldIn = (page: string): string => /textbox "Secret".*?\[ref=((?:f\d+)?e\d+)\]/.exec(page)?.[1] ?? 'e0'
const seen: SeenBody[] = []
let script: ScriptedAnswer[] = []
const server = await modelServer(t, 'openai', ({ body, text }) => {
  if (!text) return { status: 200, body: '{"data":[{"id":"m"}]}' }
  seen.push(body)
  const field = fieldIn(JSON.stringify(body.messages).replaceAll('\\"', '"'))
  const next = JSON.stringify(script.shift() ?? { text: ['Done.'] })
  return JSON.parse(next.replaceAll('THE FIELD', field)) as ScriptedAnswer
})
const daemon = await daemonWith(
  t,
  ['agent', 'agents', 'capabilities', 'personas', 'secrets', 'settings', 'skills', 'system'],
  {
    fakes: {
      'endpoints.choices': () => ({
        endpoints: [
          {
            ...{ id: 'local', label: 'Local', default: 'm', ready: true },
            models: [{ id: 'm', label: 'M', efforts: [], badges: [] }],
          },
        ],
      }),
      'endpoints.target': () => server.target(),
    },
  },
)
const { client, data, workspace } = daemon
await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
const { host } = new URL(site.url)
await client.call('POST /settings/patch', { set: { networkAllow: [host] } })
const add = async (given: object): Promise<ApplyFrame[]> => {
  const frames: ApplyFrame[] = []
  for await (const frame of await client.call('POST /capabilities', given as never)) frames.push(frame)
  return frames
}
const account = (more: object = {}) => ({
  ...{ id: 'inbox', kind: 'browser' },
  config: { platform: 'site', url: `${site.url}/`, username: 'ada', password: PASSWORD, otp: SEED, ...more },
})
const status = (id = 'inbox') => client.call('GET /capabilities/{id}/status', { id })
const profiles = () => {
  const at = join(data, 'system/browsers/profiles')
  return existsSync(at) ? readdirSync(at) : []
}
const asModel = { agent: 'endpoint/local', model: 'm' }
const call = (input: object): ScriptedAnswer => ({ calls: [{ name: 'Browser', input: input as never }] })
let turns = 0
/** What the model is told after each call. */
const told = async (answers: ScriptedAnswer[], more: object = {}, by: Client = client): Promise<string> => {
  script = answers
  const before = seen.length
  await runTurn(by, `c${++turns}`, 'go', { ...asModel, permissionMode: 'bypassPermissions', ...more })
  return JSON.stringify(seen.slice(before).map(({ messages }) => messages?.slice(1)))
}

t.test('fields are refused by name, and a sign-in needs a connection that has one', async t => {
  for (const [config, message] of [
    [{ url: 'ftp://x' }, /config\.url|expected an http/],
    [{ url: '' }, /config\.url/],
    [{ platform: 'none' }, /no card "none"/],
    [{ other: 'x' }, /config\.other: expected only platform, url/],
    [{ otp: '!!' }, /config\.otp: expected base32/],
    [{ identity: 'nobody' }, /config\.identity: expected the id of a connection of kind identity/],
  ] as const)
    t.match(await refusalOf(() => add(account(config))), { message }, JSON.stringify(config))
  for (const [config, message] of [
    [{ email: 'nobody' }, /config\.email/],
    [{ email: 'a@example.org', loginUrl: 'javascript:alert(1)' }, /http or https|address/],
    [{ email: 'a@example.org', mailbox: 'none' }, /config\.mailbox: expected the id of a connection/],
    [{ email: 'a@example.org', mailbox: 'robot' }, /config\.mailbox: expected another connection/],
  ] as const)
    t.match(await refusalOf(() => add({ id: 'robot', kind: 'identity', config })), { message }, JSON.stringify(config))
  t.same((await client.call('GET /capabilities')).capabilities, [])
  t.equal((await refusalOf(() => client.call('POST /capabilities/{id}/login', { id: 'none' }))).status, 404)
  t.equal((await fetch(`${daemon.url}/capabilities/none/login`, { method: 'POST' })).status, 401)
})

t.test('an identity links its mailbox, is used by accounts, and is renamed for them', async t => {
  await add({ id: 'mail', kind: 'cli', config: { provider: 'token', name: 'MAIL', token: 'mail-token-0815' } })
  await add({
    id: 'robot',
    kind: 'identity',
    config: { email: 'robot@example.org', password: PASSWORD, mailbox: 'mail' },
  })
  await add(account({ identity: 'robot' }))
  t.match(await status('robot'), { state: 'active' })
  t.match(await refusalOf(() => client.call('DELETE /capabilities/{id}', { id: 'robot' })), {
    ...{ status: 409, message: /accounts depend on robot: inbox/ },
  })
  await client.call('POST /capabilities/{id}/rename', { id: 'robot', to: 'machine' })
  await client.call('POST /capabilities/{id}/rename', { id: 'mail', to: 'post' })
  const { capabilities } = await client.call('GET /capabilities')
  t.match(capabilities.find(({ id }) => id === 'inbox')?.config, { identity: 'machine' })
  t.match(capabilities.find(({ id }) => id === 'machine')?.config, { mailbox: 'post' })
  t.match(await status('machine'), { state: 'active' })
  await client.call('DELETE /capabilities/{id}', { id: 'post' })
  t.match(await status('machine'), { state: 'error', detail: /mailbox post is not connected/ })
  const file = readFileSync(join(workspace, '.sandbox/config/capabilities.json'), 'utf8')
  t.notMatch(file, new RegExp(`${PASSWORD}|${SEED}`))
})

t.test('a person signs in in a window, and the account is active when it is closed', withChromium(), async t => {
  t.match(await status(), { state: 'pending', code: 'sign-in', detail: /nobody has signed in/ })
  const cancelled = await client.call('POST /capabilities/{id}/login', { id: 'inbox' })
  if (cancelled.kind !== 'browser') throw new Error('expected a window')
  t.match(await status(), { code: 'sign-in', detail: /window for the sign-in is open/ })
  t.same(await client.call('POST /capabilities/{id}/login', { id: 'inbox' }), cancelled, 'the same window')
  const finish = (handshake: string, more: object = {}) =>
    client.call('POST /capabilities/{id}/login/finish', { id: 'inbox', handshake, ...more })
  t.match(await finish(cancelled.session, { cancel: true }), { status: { state: 'pending', code: 'sign-in' } })
  t.equal((await refusalOf(() => finish('login-none'))).status, 404)

  const login = await client.call('POST /capabilities/{id}/login', { id: 'inbox' })
  if (login.kind !== 'browser') throw new Error('expected a window')
  const name = login.session
  const { text } = await between(daemon, 'browsers.use', { name, action: 'read' })
  await between(daemon, 'browsers.use', { name, action: 'fill', ref: fieldIn(text), text: 'by hand' })
  await between(daemon, 'browsers.use', { name, action: 'press', key: 'Enter' })
  await until(async () =>
    (await between(daemon, 'browsers.use', { name, action: 'read' })).text.includes('Inbox of ada'),
  )
  await client.call('DELETE /system/browsers/{name}', { name })
  await until(async () => (await status()).state === 'active')
  t.same(sent.splice(0), ['by hand'])
  t.equal(profiles().length, 1)
})

t.test(
  'a turn uses the signed-in browser by the name of the connection, and fills values in unseen',
  withChromium(),
  async t => {
    const words = await told([call({ action: 'open', url: `${site.url}/`, account: 'inbox' })])
    t.match(words, /Inbox of ada/)
    t.match(words, /inbox: Use it to work with the account ada/, 'its skill is offered')
    t.match(await told([call({ action: 'open', url: `${site.url}/` })]), /Sign in/, 'the other browser has no sign-in')
    for (const [at, text] of ['{{secret:inbox/password}}', '{{code:inbox}}'].entries()) {
      const heard = await told([
        call({ action: 'open', url: `${site.url}/` }),
        call({ action: 'fill', ref: 'THE FIELD', text }),
        call({ action: 'press', key: 'Enter' }),
        // The browser ends with the turn, and the key is pressed before the form has been sent.
        call({ action: 'read' }),
      ])
      t.notMatch(heard, new RegExp(PASSWORD))
      const late = AbortSignal.timeout(10_000)
      await until(() => sent.length > at || late.aborted)
      t.equal(sent.length, at + 1, heard)
    }
    t.match(sent, exactly(PASSWORD, /^\d{6}$/))
    const skill = await told([{ calls: [{ name: 'Skill', input: { name: 'inbox' } as never }] }])
    t.match(skill, /account: .*inbox.*secret:inbox\/password.*code:inbox.*identity machine/)
    t.notMatch(skill, new RegExp(`${PASSWORD}|${SEED}`))
    await client.call('POST /personas', { id: 'bare', capabilities: [] })
    const bare = await told([call({ action: 'open', url: `${site.url}/`, account: 'inbox' })], { actsAs: 'bare' })
    t.match(bare, /no signed-in account/)
    t.notMatch(bare, /Inbox of ada|Use it to work with/)
    t.match(
      await told(
        [
          call({ action: 'open', url: `${site.url}/` }),
          call({ action: 'fill', ref: 'THE FIELD', text: '{{code:inbox}}' }),
        ],
        {
          actsAs: 'bare',
        },
      ),
      /no connection/,
    )
  },
)

t.test(
  'what a conversation that may not land stores in an account is found by none that lands, nor the other way round',
  withChromium(),
  async t => {
    const drives = (await daemon.token('drive')).client
    const cookies = async (client: Client, by?: string) => {
      const url = `${site.url}/mark${by === undefined ? '' : `?by=${by}`}`
      const heard = await told([call({ action: 'open', url, account: 'inbox' })], {}, client)
      const [, found = heard] = /Cookies: ([^.]*)\./.exec(heard) ?? []
      // They end with the turn, a moment later.
      await until(async () =>
        (await between(daemon, 'browsers.list')).sessions.every(({ finishedAt }) => finishedAt !== undefined),
      )
      return found
    }
    t.equal(await cookies(drives, 'waits'), 'who=ada')
    t.equal(await cookies(drives), 'waits=1 who=ada', 'another that waits finds it')
    t.equal(await cookies(client, 'lands'), 'who=ada')
    t.equal(await cookies(client), 'lands=1 who=ada')
    t.equal(await cookies(drives), 'waits=1 who=ada')
    t.equal(readdirSync(join(data, 'system/browsers/apart')).length, 1)
  },
)

t.test(
  'the values of an account go to pages of its own site alone, also where that is shown in another',
  withChromium(),
  async t => {
    const form = '<form><input aria-label="Secret" name="q"></form>'
    const html = (body: string) => (_: unknown, response: ServerResponse) =>
      void response.setHeader('content-type', 'text/html').end(body)
    const other = await siteOf(t, {
      '/': html(`<title>Other</title>${form}`),
      '/frames': html(`<title>Frames</title><iframe src="${site.url}/"></iframe>`),
    })
    await client.call('POST /settings/patch', { set: { networkAllow: [host, new URL(other.url).host] } })
    const filling = (url: string, text: string) =>
      told([call({ action: 'open', url }), call({ action: 'fill', ref: 'THE FIELD', text })])
    for (const text of ['{{secret:inbox/password}}', '{{code:inbox}}', 'x{{secret:machine/password}}']) {
      const heard = await filling(`${other.url}/`, text)
      t.match(heard, /the value is filled in on pages of http:[^ ]* alone, found http:/, text)
      t.notMatch(heard, new RegExp(PASSWORD))
    }
    const framed = await filling(`${other.url}/frames`, '{{secret:inbox/password}}')
    t.match(framed, /textbox \\*"Secret\\*"[^\n]*ref=f/, 'the frame is read')
    t.notMatch(framed, /filled in on pages/)
    for (const action of ['open', 'goto'])
      t.match(
        await told([
          call({ action: 'open', url: `${site.url}/` }),
          call({ action, url: `${other.url}/?q={{secret:inbox/password}}` }),
        ]),
        /none of the values of an account/,
      )
  },
)

t.test(
  'renamed it is still signed in, changed by hand it is not used, and removing it takes its profile',
  withChromium(),
  async t => {
    await client.call('POST /capabilities/{id}/rename', { id: 'inbox', to: 'box' })
    t.match(await status('box'), { state: 'active' })
    t.match(await told([call({ action: 'open', url: `${site.url}/`, account: 'box' })]), /Inbox of ada/)
    const file = join(workspace, '.sandbox/config/capabilities.json')
    const before = readFileSync(file, 'utf8')
    writeFileSync(file, before.replace('"ada"', '"eve"'))
    t.match(await told([call({ action: 'open', url: `${site.url}/`, account: 'box' })]), /changed by hand/)
    t.match(await refusalOf(() => client.call('POST /capabilities/{id}/login', { id: 'box' })), { status: 409 })
    writeFileSync(file, before)
    await client.call('DELETE /capabilities/{id}', { id: 'box' })
    t.same(profiles(), [])
    t.same(readdirSync(join(data, 'system/browsers/apart')), [])
    t.notOk((await inner(daemon, 'secrets.names', {} as never)).names.some(name => name.startsWith('box/')))
  },
)
