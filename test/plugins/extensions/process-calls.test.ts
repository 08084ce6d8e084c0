import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { declaredPowers } from '../../../plugins/extensions/powers/powers.js'
import { approvePending, daemonWithBackends, listedUntil, recordNamed, writeExtension } from './support.js'

const daemon = await daemonWithBackends(t, [
  'activity',
  'areas',
  'capabilities',
  'logs',
  'secrets',
  'settings',
  'skills',
  'system',
])
const { client } = daemon
/** Answers with its variables and its arguments, or makes a call of the daemon. */
const PROGRAM = `
const { createServer } = require('node:http')
const { SANDBOX_DAEMON, SANDBOX_EXTENSION_TOKEN } = process.env
console.log('its token is ' + SANDBOX_EXTENSION_TOKEN)
createServer(async (request, response) => {
  let body = ''
  for await (const piece of request) body += piece
  if (request.url === '/_env') return response.end(JSON.stringify({ env: process.env, argv: process.argv }))
  if (request.url === '/_end') return process.exit(3)
  if (request.url === '/_files') {
    const { readdirSync, readFileSync } = require('node:fs')
    const at = process.env.SANDBOX_SECRETS_DIR
    const all = readdirSync(at, { recursive: true, withFileTypes: true }).filter(each => each.isFile())
    const files = all.map(({ parentPath, name }) => parentPath + '/' + name)
    return response.end(JSON.stringify({
      files: Object.fromEntries(files.map(path => [path.slice(at.length + 1), readFileSync(path, 'utf8')])),
    }))
  }
  if (request.url === '/_fork') {
    require('node:child_process').spawn('sleep', ['1000'], { stdio: 'ignore' })
    return response.end('{}')
  }
  const answer = await fetch(SANDBOX_DAEMON + request.url, {
    method: request.method,
    headers: { 'x-sandbox-extension': SANDBOX_EXTENSION_TOKEN, 'content-type': 'application/json' },
    ...(body && { body }),
  })
  response.end(JSON.stringify({ status: answer.status, body: await answer.json() }))
}).listen(Number(process.env.PORT), '127.0.0.1')
`
/** What the program answers: an answer of the daemon, or its variables and arguments. */
interface Answered {
  readonly status: number
  readonly body: { readonly message: string }
  readonly env: { readonly [name: string]: string }
  readonly argv: readonly string[]
  readonly files: { readonly [path: string]: string }
}
const id = 'ada.caller'
const ENTRIES = ['GET /extensions/{id}/readiness', 'POST /skills', 'POST /skills/*', 'GET /*', 'DELETE /members/*']
const CONNECTION = 'GET /capabilities/{id}/connection'
const manifestOf = (name: string, daemonEntries: readonly string[], sandbox: readonly string[] = []) => ({
  ...{ publisher: 'ada', name, version: '1.0.0', permissions: { daemon: daemonEntries, sandbox } },
  contributes: { processes: [{ name: 'web', command: 'node web.cjs', port: 'auto' }] },
})
for (const [name, entries, sandbox] of [
  ['caller', ENTRIES],
  ['silent', []],
  ['dialler', [CONNECTION], ['connection:token']],
  ['unnamed', [CONNECTION]],
] as const)
  writeExtension(daemon, name, manifestOf(name, entries, sandbox), { 'web.cjs': PROGRAM })
for (const name of ['ada.caller', 'ada.silent', 'ada.dialler', 'ada.unnamed']) {
  await listedUntil(daemon, ({ pending }) => pending.some(each => each.id === name))
  await approvePending(daemon, name)
}
const start = async (extension = id) => {
  await client.call('POST /extensions/{id}/processes/{name}/start', { id: extension, name: 'web' })
  const { port } = await client.call('GET /extensions/{id}/processes/{name}', { id: extension, name: 'web' })
  const asked = async (method: string, path: string, input?: object): Promise<Answered> => {
    for (const end = Date.now() + 15_000; ;)
      try {
        const body = input && { body: JSON.stringify(input) }
        return (await (await fetch(`http://127.0.0.1:${port}${path}`, { method, ...body })).json()) as Answered
      } catch (error) {
        if (Date.now() > end) throw error
        await new Promise(resolve => setTimeout(resolve, 20))
      }
  }
  return asked
}
const stop = () => client.call('POST /extensions/{id}/processes/{name}/stop', { id, name: 'web' })
const as = (token: string, path: string) => fetch(daemon.url + path, { headers: { 'x-sandbox-extension': token } })

t.test('a process calls what its manifest names, and nothing else', async t => {
  const ask = await start()
  t.match(await ask('GET', `/extensions/${id}/readiness`), { status: 200 })
  t.match(await ask('GET', '/skills'), { status: 200 }, 'by the wildcard')
  const skill = { id: 'own', name: 'Own', description: 'Its own.', body: 'Do it.' }
  const saved = await ask('POST', '/skills', skill)
  t.not(saved.status, 401)
  t.not(saved.status, 403, 'a maintainer route that an entry names')
  for (const [method, path, why] of [
    ['GET', '/secrets', 'what no extension reaches'],
    ['DELETE', '/members/self', 'the same, though every viewer may'],
    ['GET', '/logs', 'a maintainer route behind a wildcard'],
    ['POST', '/skills/remove', 'a maintainer route behind a wildcard'],
    ['GET', `/extensions/${id}/settings`, 'no entry'],
    ['POST', '/settings', 'no entry'],
    ['POST', '/system/ws-ticket', 'no entry'],
    ['GET', `/x/${id}/anything`, 'a subtree'],
  ] as const) {
    const { status, body } = await ask(method, path, method === 'POST' ? {} : undefined)
    t.equal(status, 403, `${method} ${path}: ${why}`)
    t.match(body.message, /ada\.caller may not call/)
  }
})

t.test('its credential is in its environment alone, and no longer than it runs', async t => {
  const ask = await start()
  const { env, argv } = await ask('GET', '/_env')
  const token = env.SANDBOX_EXTENSION_TOKEN!
  t.match(token, /^sbe_[\w-]{22}\.[\w-]{43}$/)
  t.equal(env.SANDBOX_DAEMON, daemon.url)
  t.notMatch(JSON.stringify(argv), 'sbe_')
  t.notMatch(execFileSync('ps', ['-eo', 'args', 'ww'], { encoding: 'utf8' }), token)
  const secret = token.split('.')[1]!
  const logged = () => readFileSync(join(daemon.data, 'logs/terminals/proc-ada-caller-web.log'), 'utf8')
  await listedUntil(daemon, () => logged().includes('its token is'))
  for (const file of readdirSync(daemon.data, { recursive: true, withFileTypes: true }))
    if (file.isFile()) t.notMatch(readFileSync(join(file.parentPath, file.name), 'latin1'), secret, file.name)
  t.equal((await as(token, '/skills')).status, 200)
  t.equal((await as(`${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`, '/skills')).status, 401)
  const stream = await as(token, '/events')
  t.equal(stream.status, 200)
  await ask('GET', '/_fork')
  await stop()
  t.equal((await as(token, '/skills')).status, 401, 'also for children that would have outlived it')
  await stream.text().catch(() => {})
  const again = await start()
  const { env: next } = await again('GET', '/_env')
  t.not(next.SANDBOX_EXTENSION_TOKEN, token)
  await stop()
})

t.test('a program that ends by itself loses its credential, and is restarted with another', async t => {
  const ask = await start()
  const token = (await ask('GET', '/_env')).env.SANDBOX_EXTENSION_TOKEN!
  t.equal((await as(token, '/skills')).status, 200)
  const { port } = await client.call('GET /extensions/{id}/processes/{name}', { id, name: 'web' })
  await fetch(`http://127.0.0.1:${port}/_end`).catch(() => {})
  for (const end = Date.now() + 15_000; (await as(token, '/skills')).status !== 401;)
    if (Date.now() > end) throw new Error('its credential is still valid')
  t.not((await ask('GET', '/_env')).env.SANDBOX_EXTENSION_TOKEN, token)
  await stop()
})

t.test('no spelling of a path reaches what no entry names', async t => {
  const ask = await start()
  for (const path of [
    `/extensions/${id}%2Fx/readiness`,
    '/skills/../secrets',
    '/skills/%2e%2e/secrets',
    '/SECRETS',
    '//secrets',
    `/extensions/${id}/readiness/../settings`,
  ])
    t.match(String((await ask('GET', path)).status), /^(?:400|403|404)$/, path)
  await stop()
})

t.test('a program whose manifest names no call gets no credential', async t => {
  const ask = await start('ada.silent')
  const { env } = await ask('GET', '/_env')
  t.notOk(Object.keys(env).some(name => /TOKEN|DAEMON/.test(name)))
})

t.test('a connection is shown to the extensions that name its card, without a value', async t => {
  await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
  const value = 'value-of-the-tracker-5678'
  for (const [of, config] of [
    ['tracker', { provider: 'token', name: 'TRACKER', token: value }],
    ['forge', { provider: 'github', token: value }],
    ['codes', { provider: 'otp', otp: 'GEZDGNBVGY3TQOJQ' }],
  ] as const)
    for await (const _ of await client.call('POST /capabilities', { id: of, kind: 'cli', config }));
  const path = '/capabilities/tracker/connection'
  const ask = await start('ada.dialler')
  const answer = await ask('GET', path)
  const config = { provider: 'token', name: 'TRACKER', token: '{{secret:tracker/token}}' }
  t.same(answer, { status: 200, body: { id: 'tracker', kind: 'cli', config } })
  for (const other of ['forge', 'codes'])
    t.match(await ask('GET', `/capabilities/${other}/connection`), {
      status: 403,
      body: { message: /no entry connection:(?:github|otp)/ },
    })
  t.match(await ask('GET', '/capabilities/nobody/connection'), { status: 404 })
  t.match(await ask('GET', '/capabilities/a%20b/connection'), { status: 400 })
  const without = await (await start('ada.unnamed'))('GET', path)
  t.match(without, { status: 403, body: { message: /no entry connection:<card>/ } })
  t.match(await (await start())('GET', path), {
    status: 403,
    body: { message: /may not call capabilities\.connection/ },
  })
  t.equal((await fetch(daemon.url + path)).status, 401)
  const owner = await daemon.fetch(path)
  t.equal(owner.status, 403)
  t.match(await owner.json(), { message: /people cannot make the call capabilities\.connection/ })
  const { token } = await daemon.token('land')
  t.equal((await fetch(daemon.url + path, { headers: { 'x-sandbox-control': token } })).status, 403)
  t.notMatch(JSON.stringify([answer, without, daemon.logged]), value)
  await stop()
})

t.test(
  'a process finds the secret fields of the connections that its manifest names as files, and no others',
  async t => {
    const ask = await start('ada.dialler')
    const value = 'value-of-the-tracker-5678'
    const filesBecome = async (files: object) => {
      for (const end = Date.now() + 15_000; ;) {
        const found = (await ask('GET', '/_files')).files
        if (isDeepStrictEqual(found, files) || Date.now() > end) return t.same(found, files)
      }
    }
    const connect = async (of: string, token: string) => {
      const config = { provider: 'token', name: of.toUpperCase(), token }
      for await (const _ of await client.call('POST /capabilities', { id: of, kind: 'cli', config }));
    }
    await filesBecome({ 'tracker/token': value })
    const { pid } = await client.call('GET /extensions/{id}/processes/{name}', { id: 'ada.dialler', name: 'web' })
    await connect('second', 'value-of-the-second-5678')
    await filesBecome({ 'tracker/token': value, 'second/token': 'value-of-the-second-5678' })
    await connect('tracker', 'another-value-of-the-tracker')
    await filesBecome({ 'tracker/token': 'another-value-of-the-tracker', 'second/token': 'value-of-the-second-5678' })
    await client.call('DELETE /capabilities/{id}', { id: 'tracker' })
    await filesBecome({ 'second/token': 'value-of-the-second-5678' })
    const now = await client.call('GET /extensions/{id}/processes/{name}', { id: 'ada.dialler', name: 'web' })
    t.equal(now.pid, pid, 'it goes on')
    const { env } = await (await start('ada.unnamed'))('GET', '/_env')
    t.notOk('SANDBOX_SECRETS_DIR' in env)
    const { manifest } = await recordNamed(daemon, 'ada.dialler')
    const texts = declaredPowers(manifest).map(({ text }) => text)
    t.ok(texts.includes('uses the connections made from the card token, whose secret values its programs read'))
  },
)

t.test('what a process used is counted for its extension', async t => {
  const { usage } = await recordNamed(daemon, id)
  t.ok('POST /skills' in usage)
  t.notOk('POST /skills/*' in usage)
})
