import { existsSync, readdirSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { describedGroups } from '../../../kernel/http/describe.js'
import { openapi } from '../../../openapi/document.js'
import { daemonWith, root, type Support } from '../../support/daemon.js'

const manifests = join(root, '..', 'test', 'support', 'forms', 'manifests')

const post = async (daemon: Support, path: string, body: NonNullable<RequestInit['body']>, type?: string) => {
  const headers = { authorization: `Bearer ${daemon.session}`, ...(type && { 'content-type': type }) }
  const answer = await fetch(daemon.url + path, { method: 'POST', body, headers })
  const { given, held, message = '' } = (await answer.json()) as { given?: string; held?: string; message?: string }
  return {
    status: answer.status,
    message,
    held,
    given: given === undefined ? undefined : (JSON.parse(given) as { [field: string]: unknown }),
  }
}

/** The stored files of forms; they may be removed shortly after the answer was read. */
const held = async ({ data }: Support): Promise<string[]> => {
  const files = () => (existsSync(join(data, 'uploads')) ? readdirSync(join(data, 'uploads')) : [])
  for (let tries = 0; tries < 200 && files().length > 0; tries++) await new Promise(resolve => setTimeout(resolve, 10))
  return files()
}

const formOf = (fields: { [name: string]: string | Blob }): FormData => {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.append(name, value)
  return form
}

t.test('a text body becomes the field text, and JSON is accepted too', async t => {
  const daemon = await daemonWith(t, ['forms'], { manifests })
  t.same((await post(daemon, '/forms/text', 'grüße', 'text/plain; charset=utf-8')).given, { text: 'grüße' })
  t.same((await post(daemon, '/forms/text', '# a', 'text/markdown')).given, { text: '# a' })
  t.same((await post(daemon, '/forms/text', '{"text":"b"}', 'application/json')).given, { text: 'b' })
  const long = await post(daemon, '/forms/text', 'x'.repeat(101), 'text/plain')
  t.equal(long.status, 400)
  t.match(long.message, /^text: expected text/)
})

t.test('the fields of a form are converted to the declared types', async t => {
  const daemon = await daemonWith(t, ['forms'], { manifests })
  const { given } = await post(
    daemon,
    '/forms/fields',
    new URLSearchParams([
      ['name', 'Ada'],
      ['age', '36'],
      ['tags', 'a'],
      ['tags', 'b'],
    ]),
  )
  t.same(given, { name: 'Ada', age: 36, tags: ['a', 'b'] })
  t.same((await post(daemon, '/forms/fields', formOf({ name: 'Ada', tags: 'one' }))).given, {
    name: 'Ada',
    tags: ['one'],
  })
  for (const [name, body, message] of [
    ['a field twice', 'name=a&name=b', /^name: expected once in the body, found 2 times/],
    ['a wrong type', 'name=a&age=old', /^age: expected/],
    ['a closed key', 'name=a&__proto__=b', /__proto__ is not allowed/],
    ['a missing field', 'age=3', /^name: expected/],
  ] as const) {
    const answer = await post(daemon, '/forms/fields', body, 'application/x-www-form-urlencoded')
    t.equal(answer.status, 400, name)
    t.match(answer.message, message, name)
  }
  t.same(
    (await post(daemon, '/forms/fields', 'name=a&name[b]=c', 'application/x-www-form-urlencoded')).given,
    { name: 'a' },
    'keys are unchanged',
  )
})

t.test('a file of a form is on the disk until the call is answered, under a generated name', async t => {
  const daemon = await daemonWith(t, ['forms'], { manifests })
  const answer = await post(
    daemon,
    '/forms/file',
    formOf({ note: 'n', file: new File(['hello'], '../../evil.txt', { type: 'text/plain' }) }),
  )
  t.equal(answer.status, 200, answer.message)
  t.equal(answer.held, 'hello')
  t.match(answer.given, { note: 'n', file: { name: '../../evil.txt', type: 'text/plain', bytes: 5 } })
  const { path } = answer.given!.file as { path: string }
  t.ok(path.startsWith(join(daemon.data, 'uploads')) && !path.includes('evil'), "in the daemon's own folder")
  t.same(await held(daemon), [], 'it is removed after the answer')
  const none = await post(daemon, '/forms/file', formOf({ note: 'n' }))
  t.equal(none.status, 400)
  t.match(none.message, /^file: expected/)
  t.same(await held(daemon), [], 'a refused call leaves none')
})

t.test('a form that is too large, malformed or of another type is refused, and leaves no files', async t => {
  const daemon = await daemonWith(t, ['forms'], { manifests })
  const big = new File(['x'.repeat(200_000)], 'a')
  t.equal((await post(daemon, '/forms/file', formOf({ file: big }))).status, 413)
  t.equal((await post(daemon, '/forms/text', 'x'.repeat(1001), 'text/plain')).status, 413)
  t.equal(
    (await post(daemon, '/forms/fields', `name=${'x'.repeat(1001)}`, 'application/x-www-form-urlencoded')).status,
    413,
  )
  t.equal((await post(daemon, '/forms/text', 'a=b', 'application/x-www-form-urlencoded')).status, 415)
  t.equal((await post(daemon, '/forms/file', '--x\r\nbroken', 'multipart/form-data; boundary=x')).status, 400)
  t.equal((await post(daemon, '/forms/file', 'x', 'multipart/form-data')).status, 400)
  const chunked = await new Promise<number | undefined>(resolve => {
    const headers = { authorization: `Bearer ${daemon.session}`, 'content-type': 'text/plain' }
    const req = request(`${daemon.url}/forms/text`, { method: 'POST', headers }, res => resolve(res.statusCode))
    req.on('error', () => resolve(undefined))
    req.write('x'.repeat(600))
    req.end('x'.repeat(600))
  })
  t.equal(chunked, 413, 'counted if no length is sent')
  t.same(await held(daemon), [])
  t.equal((await post(daemon, '/forms/text', 'still here', 'text/plain')).status, 200)
})

t.test('a caller without access is refused before a byte of the form is stored', async t => {
  const daemon = await daemonWith(t, ['forms'], { manifests })
  const stranger = await fetch(`${daemon.url}/forms/file`, {
    method: 'POST',
    body: formOf({ file: new File(['a'], 'a') }),
  })
  t.equal(stranger.status, 401)
  const { token } = await daemon.token('read')
  const reader = await fetch(`${daemon.url}/forms/file`, {
    method: 'POST',
    headers: { 'x-sandbox-control': token },
    body: formOf({ file: new File(['a'], 'a') }),
  })
  t.equal(reader.status, 403)
  t.same(await held(daemon), [])
})

t.test('the document names the accepted body types', async t => {
  const { groups } = await daemonWith(t, ['forms'], { manifests })
  const { paths } = openapi(await describedGroups(groups))
  const typesOf = (path: string) => Object.keys((paths![path]!.post!.requestBody as { content: object }).content)
  t.same(typesOf('/forms/text'), ['application/json', 'text/*'])
  t.same(typesOf('/forms/fields'), ['application/json', 'application/x-www-form-urlencoded', 'multipart/form-data'])
})
