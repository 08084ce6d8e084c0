import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Api } from '../../../sdk/api.js'
import type { Input } from '../../../sdk/contract.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { askPage, outboxWith, pathOfUrl } from './support.js'
import { clientOf } from '../../support/people.js'
import { meantInClear } from '../../support/secret-search.js'
import { runTurn } from '../../support/turns.js'
import { openVaultOf } from '../secrets/support.js'

const VALUE = 'tr0ub4dor&3-and-more'
const GROUPS = ['outbox', 'agent', 'agents', 'secrets', 'activity', 'settings']
const PNG = Buffer.from('89504e470d0a1a0a0000000d4948445200000001000000010806000000', 'hex')

t.test('the outbox', async t => {
  const daemon = await outboxWith(t, GROUPS, {
    files: {
      'site/index.html': '<!doctype html><img src="pixel.png">',
      'site/.env': 'A=1',
      'site/server.key': 'nothing',
      'site/notes.txt': `-----BEGIN RSA PRIVATE KEY-----\nMIIE`,
      'note.txt': 'a note\n',
      id_rsa: 'nothing',
    },
  })
  const { client, workspace, url } = daemon
  writeFileSync(join(workspace, 'site/pixel.png'), PNG)
  symlinkSync('/etc/passwd', join(workspace, 'site/passwd'))
  const [mai, ada, vic] = ['mai', 'ada', 'vic'].map(name => clientOf(daemon, `${name}@example.org`))
  await openVaultOf(daemon)
  await client.call('POST /secrets', { key: 'HOOK', value: VALUE })
  const publish = (input: Input<Api, 'POST /public/publish'>) => mai!.call('POST /public/publish', input)
  const list = async () => (await client.call('GET /public', {})).files
  const served = async (address: string | undefined) => (await askPage(url, pathOfUrl(address))).status
  const activity = async (type: string) => (await client.call('GET /activity', { type })).events

  await t.test('without a credential and with too little of one nothing is listed, published or withdrawn', async t => {
    for (const [method, path, body, refused] of [
      ['GET', '/public', undefined, []],
      ['POST', '/public/publish', { path: 'site' }, ['read', 'drive', 'land', 'vic', 'cas']],
      ['POST', '/public/unpublish', { path: 'site' }, ['read', 'drive', 'land', 'vic', 'cas']],
      ['POST', '/public/rotate', {}, ['read', 'drive', 'land', 'vic', 'cas']],
    ] as const) {
      const send = async (headers: { [name: string]: string }) => {
        const type = body ? { 'content-type': 'application/json', ...headers } : headers
        const init = { method, headers: type, ...(body && { body: JSON.stringify(body) }) }
        return (await fetch(url + path, init)).status
      }
      t.equal(await send({}), 401, `${method} ${path}`)
      for (const who of ['editor', ...refused]) {
        const isPerson = who === 'vic' || who === 'cas'
        const headers: { [name: string]: string } = isPerson
          ? { authorization: `Bearer ${who}@example.org` }
          : { 'x-sandbox-control': (await daemon.token(who as 'read')).token }
        t.equal(await send(headers), 403, `${method} ${path} with ${who}`)
      }
    }
    t.notOk(existsSync(join(workspace, 'public')))
    t.match(await vic!.call('GET /public', {}), { reach: 'machine', files: exactly(), totalBytes: 0 })
  })

  await t.test('what cannot be published is refused with its reason, and nothing is left', async t => {
    mkdirSync(join(workspace, 'deep/1/2/3/4/5/6/7/8/9/10/11/12'), { recursive: true })
    mkdirSync(join(workspace, 'empty'))
    writeFileSync(join(workspace, 'deep/1/2/3/4/5/6/7/8/9/10/11/12/file'), '')
    writeFileSync(join(workspace, 'value.txt'), `${'x'.repeat(1_048_570)}${VALUE}`)
    meantInClear(daemon, 'workspace: value.txt', 'the file that is to be refused')
    for (const [input, status, message] of [
      [{ path: '../x' }, 400, /workspace path/],
      [{ path: '/etc/passwd' }, 400, /workspace path/],
      [{ path: 'public/x' }, 400, /outside of public/],
      [{ path: 'note.txt', as: '.hidden' }, 400, /as/],
      [{ path: 'note.txt', as: 'a/b' }, 400, /as/],
      [{ path: 'note.txt', as: 'a\\b' }, 400, /backslash/],
      [{ path: 'nothing' }, 404, /nothing/],
      [{ path: 'note.txt', agent: 'nobody' }, 404, /nobody/],
      [{ path: 'deep' }, 413, /12 folders/],
      [{ path: 'site/.env' }, 422, /hidden/],
      [{ path: 'site/server.key' }, 422, /credential-name/],
      [{ path: 'id_rsa', as: 'innocent' }, 422, /credential-name/],
      [{ path: 'note.txt', as: 'x.pem' }, 422, /credential-name/],
      [{ path: 'site/notes.txt' }, 422, /credential-content/],
      [{ path: 'value.txt' }, 422, /credential-content/],
      [{ path: 'site/passwd' }, 400, /leads out/],
      [{ path: 'empty' }, 422, /no file/],
      [{ path: 'note.txt', expiresAt: Date.now() - 1 }, 422, /past/],
    ] as const)
      t.match(await refusalOf(() => publish(input)), { status, message }, JSON.stringify(input))
    t.match(await refusalOf(() => mai!.call('POST /public/unpublish', { path: '../x' })), { status: 400 })
    t.same(await mai!.call('POST /public/unpublish', { path: 'nothing' }), { ok: true })
    t.notOk(existsSync(join(workspace, 'public')))
    t.same(await list(), [])
  })

  await t.test('of a folder, page and picture are served; hidden files, credentials and links are not', async t => {
    const published = await publish({ path: 'site', as: 'My site' })
    t.match(published, {
      ...{ path: 'My site', files: 2, url: /\/p\/[a-z2-7]{26}\/My%20site\/$/ },
      blocked: exactly(
        { path: '.env', reason: 'hidden' },
        { path: 'notes.txt', reason: 'credential-content' },
        { path: 'passwd', reason: 'link' },
        { path: 'server.key', reason: 'credential-name' },
      ),
    })
    const folder = pathOfUrl(published.url)
    const page = await askPage(url, folder)
    t.match(page, {
      status: 200,
      headers: {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': 'sandbox allow-scripts allow-forms allow-popups allow-downloads',
        'x-content-type-options': 'nosniff',
        'x-robots-tag': 'noindex',
        'cache-control': 'no-cache',
        'accept-ranges': 'bytes',
        etag: /^W\/"[\w-]{22}"$/,
      },
    })
    t.same(page.body, readFileSync(join(workspace, 'site/index.html')))
    t.same((await askPage(url, `${folder}pixel.png`)).body, PNG)
    for (const name of ['.env', 'passwd', 'server.key', 'notes.txt'])
      t.equal((await askPage(url, folder + name)).status, 404, name)
    t.match(await askPage(url, folder.slice(0, -1)), { status: 301, headers: { location: 'My%20site/' } })
    t.match(await askPage(url, folder, { 'if-none-match': `"x", ${page.headers.etag}` }), { status: 304 })
    const head = await askPage(url, folder, { method: 'HEAD' })
    t.match(head, { status: 200, headers: { 'content-length': String(page.body.length) } })
    t.equal(head.body.length, 0)
    t.equal((await askPage(url, folder, { method: 'POST' })).status, 405)
    const files = await list()
    t.match(
      files,
      exactly(
        { path: 'My site/index.html', source: 'site/index.html', publishedBy: 'mai@example.org', opened: 1 },
        { path: 'My site/pixel.png', url: `${published.url}pixel.png`, opened: 1 },
      ),
    )
    const [entry] = await activity('outbox.published')
    t.match(entry, { actor: 'mai@example.org', extra: { path: 'My site' } })
    t.notMatch(JSON.stringify(entry), new RegExp(folder.split('/')[2]!))
  })

  await t.test('people limited to areas see what was copied from there', async t => {
    await publish({ path: 'note.txt' })
    t.match((await ada!.call('GET /public', {})).files, exactly({ source: 'site/index.html' }, {}))
    t.match(await vic!.call('GET /public', { limit: 1 }), { files: exactly({}), next: 'My site/index.html' })
    t.match((await vic!.call('GET /public', { after: 'My site/pixel.png' })).files, exactly({ path: 'note.txt' }))
  })

  await t.test('what a person or a turn puts there by hand is unlisted and not served', async t => {
    const base = (await client.call('GET /public', {})).url!
    writeFileSync(join(workspace, 'public/by-hand.txt'), 'x')
    await runTurn(client, 'maker', 'run echo x > public/by-turn.txt')
    t.ok(existsSync(join(workspace, 'public/by-turn.txt')))
    const files = await list()
    for (const name of ['by-hand.txt', 'by-turn.txt']) {
      t.match(
        files.find(({ path }) => path === name),
        { reason: 'unlisted', blocked: /not published/, url: undefined },
      )
      t.equal(await served(`${base}/${name}`), 404)
      t.match(await refusalOf(() => publish({ path: 'note.txt', as: name })), { status: 409, message: /not published/ })
      t.match(await refusalOf(() => mai!.call('POST /public/unpublish', { path: name })), {
        status: 409,
        message: /was not published: delete it as any file/,
      })
      t.ok(existsSync(join(workspace, 'public', name)))
      rmSync(join(workspace, 'public', name))
    }
  })

  await t.test('what a person keeps in a published folder stays when the folder is withdrawn', async t => {
    mkdirSync(join(workspace, 'pages'))
    for (const name of ['a.html', 'b']) writeFileSync(join(workspace, 'pages', name), 'published')
    await publish({ path: 'pages' })
    const own = (path: string) => join(workspace, 'public/pages', path)
    mkdirSync(own('mine'))
    writeFileSync(own('mine/note.txt'), 'mine')
    rmSync(own('b'))
    mkdirSync(own('b'))
    writeFileSync(own('b/too.txt'), 'mine')
    t.match(await refusalOf(() => publish({ path: 'pages' })), {
      status: 409,
      message: /^"public\/pages\/(?:mine\/note|b\/too)\.txt" was not published: .*move it away/,
    })
    await mai!.call('POST /public/unpublish', { path: 'pages' })
    t.same(
      ['a.html', 'b/too.txt', 'mine/note.txt'].map(path => existsSync(own(path))),
      [false, true, true],
    )
    t.match(await refusalOf(() => mai!.call('POST /public/unpublish', { path: 'pages' })), { status: 409 })
    rmSync(join(workspace, 'public/pages'), { recursive: true })
  })

  await t.test(
    'a served file that a stored value gets into is blocked at the next request, and noted once',
    async t => {
      const { url: address } = await publish({ path: 'note.txt' })
      const was = readFileSync(join(workspace, 'public/note.txt'))
      writeFileSync(join(workspace, 'public/note.txt'), `key: ${VALUE}`)
      for (let times = 0; times < 3; times++) t.equal(await served(address), 404)
      t.match(
        (await list()).filter(({ path }) => path === 'note.txt'),
        exactly({ reason: 'credential-content' }),
      )
      while ((await activity('outbox.blocked')).length === 0) await new Promise(resolve => setTimeout(resolve, 10))
      t.match(await activity('outbox.blocked'), exactly({ extra: { path: 'note.txt', reason: 'credential-content' } }))
      writeFileSync(join(workspace, 'public/note.txt'), was)
      t.equal(await served(address), 200, 'the published bytes again')
      writeFileSync(join(workspace, 'later.txt'), 'The password is correct-horse-battery.\n')
      const later = await publish({ path: 'later.txt' })
      t.equal(await served(later.url), 200)
      meantInClear(daemon, 'workspace: later.txt', 'the file from before it was stored')
      meantInClear(daemon, 'workspace: public/later.txt', 'its copy')
      await client.call('POST /secrets', { key: 'LATER', value: 'correct-horse-battery' })
      t.equal(await served(later.url), 404, 'a value that was stored after publishing')
      await client.call('DELETE /secrets/{key}', { key: 'LATER' })
      t.equal(await served(later.url), 200)
    },
  )

  await t.test('links in the outbox are not followed', async t => {
    const { url: address } = await publish({ path: 'note.txt', as: 'linked.txt' })
    await runTurn(client, 'linker', 'run rm public/linked.txt && ln -s ../note.txt public/linked.txt')
    t.equal(await served(address), 404)
    t.match(
      (await list()).filter(({ path }) => path === 'linked.txt'),
      exactly({ reason: 'link' }),
    )
    await mai!.call('POST /public/unpublish', { path: 'linked.txt' })
    t.ok(existsSync(join(workspace, 'note.txt')))
  })

  await t.test('a file of a private copy is published', async t => {
    await runTurn(client, 'copier', 'write made.txt\n| of the copy', { isolated: true })
    const { url: address } = await publish({ path: 'made.txt', agent: 'copier' })
    t.equal((await askPage(url, pathOfUrl(address))).body.toString().trim(), 'of the copy')
    t.match(await refusalOf(() => publish({ path: 'made.txt' })), { status: 404 })
  })

  await t.test('unknown, malformed, blocked and withdrawn paths get the same answer in the same time', async t => {
    const base = pathOfUrl((await client.call('GET /public', {})).url)
    const wrong = base.slice(0, -1) + (base.endsWith('a') ? 'b' : 'a')
    const paths = [
      ...['/nothing', '/..%2fnote.txt', '/../note.txt', '/%00', '//note.txt', '/note.txt/', '/My%20site//index.html'],
      ...['/%', '/a%5Cb', '/', `/${'x'.repeat(900)}`].map(path => path),
    ].map(path => base + path)
    const all = [...paths, `${wrong}/note.txt`, `${wrong}/..%2fnote.txt`, '/p/', '/p']
    const bodies = new Set<string>()
    for (const accept of ['text/html', 'application/json']) {
      for (const path of all) {
        const answer = await askPage(url, path, { accept })
        t.equal(answer.status, 404, path)
        bodies.add(answer.body.toString())
        t.equal(answer.headers['content-type']?.split(';')[0], accept)
      }
      t.equal(bodies.size, accept === 'text/html' ? 1 : 2, [...bodies].join('\n'))
    }
    for (const path of [base, wrong])
      t.match(await askPage(url, path), { status: 301, headers: { location: `${path.slice(3)}/` } })
    const timeOf = async (path: string) => {
      const times: number[] = []
      for (let at = 0; at < 40; at++) {
        const begun = performance.now()
        await askPage(url, path)
        times.push(performance.now() - begun)
      }
      return times.sort((a, b) => a - b)[20]!
    }
    const [known, guessed] = [await timeOf(`${base}/nothing`), await timeOf(`${wrong}/nothing`)]
    t.ok(Math.abs(known - guessed) < 5, `${known} ms and ${guessed} ms`)
  })

  await t.test('an expired file is not served, and can be published again', async t => {
    const expiresAt = Date.now() + 1_000
    const { url: address } = await publish({ path: 'note.txt', as: 'short.txt', expiresAt })
    t.equal(await served(address), 200)
    await new Promise(resolve => setTimeout(resolve, expiresAt - Date.now() + 5))
    t.equal(await served(address), 404)
    t.match(
      (await list()).filter(({ path }) => path === 'short.txt'),
      exactly({ reason: 'expired', expiresAt }),
    )
    t.equal((await publish({ path: 'note.txt', as: 'short.txt' })).url, address)
    t.equal(await served(address), 200)
  })

  await t.test('a new slot ends every old address', async t => {
    const before = (await client.call('GET /public', {})).url!
    t.equal(await served(`${before}/note.txt`), 200)
    const { url: after } = await mai!.call('POST /public/rotate')
    t.not(after, before)
    t.equal(await served(`${before}/note.txt`), 404)
    t.equal(await served(`${after}/note.txt`), 200)
    t.match(await activity('outbox.rotated'), exactly({ actor: 'mai@example.org' }))
  })

  await t.test('files are withdrawn alone and together, and the folder goes with the last', async t => {
    const files = await list()
    const at = files.find(({ path }) => path === 'My site/pixel.png')!
    t.equal(await served(at.url), 200)
    await mai!.call('POST /public/unpublish', { path: at.path })
    t.equal(await served(at.url), 404)
    t.equal(await served(files.find(({ path }) => path === 'My site/index.html')!.url), 200)
    for (const { path } of await list()) await mai!.call('POST /public/unpublish', { path })
    t.notOk(existsSync(join(workspace, 'public')))
    t.same(await list(), [])
    t.ok((await activity('outbox.withdrawn')).length > 2)
  })
})

t.test('a deployment switches serving off, or gives it a host of its own', async t => {
  const files = { 'page.html': '<h1>page</h1>', 'picture.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>' }
  const off = await daemonWith(t, ['outbox'], { files, deployment: { public: { serve: 'off' } } })
  t.match(await refusalOf(() => off.client.call('POST /public/publish', { path: 'page.html' })), { status: 409 })
  t.match(await refusalOf(() => off.client.call('POST /public/rotate')), { status: 409 })
  t.match(await off.client.call('GET /public', {}), { reach: 'none', url: undefined })
  const own = await daemonWith(t, ['outbox', 'settings'], {
    files,
    // At a host of their own, calls are not there.
    undeclared: true,
    deployment: { public: { host: 'files.example.org' }, http: { origins: ['http://*.example.org'] } },
  })
  const { url } = await own.client.call('POST /public/publish', { path: 'page.html' })
  const picture = await own.client.call('POST /public/publish', { path: 'picture.svg' })
  t.match(url, /^http:\/\/files\.example\.org\/p\//)
  const host = 'files.example.org'
  t.match(await askPage(own.url, pathOfUrl(url), { host }), { status: 200, headers: { 'content-security-policy': '' } })
  t.equal(
    (await askPage(own.url, pathOfUrl(picture.url), { host })).headers['content-security-policy'],
    "script-src 'none'",
  )
  t.match(await askPage(own.url, pathOfUrl(url)), { status: 200, headers: { 'content-security-policy': /^sandbox / } })
  for (const path of ['/', '/settings', '/health', '/openapi.json'])
    t.equal((await askPage(own.url, path, { host })).status, 404, path)
  const foreign = await askPage(own.url, '/health', { origin: 'http://files.example.org' })
  t.notOk(foreign.headers['access-control-allow-origin'])
  const other = await askPage(own.url, '/health', { origin: 'http://app.example.org' })
  t.equal(other.headers['access-control-allow-origin'], 'http://app.example.org')
})
