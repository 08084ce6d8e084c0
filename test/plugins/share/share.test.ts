import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Api } from '../../../sdk/api.js'
import type { Input } from '../../../sdk/contract.js'
import { refuse } from '../../../sdk/index.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { clientOf } from '../../support/people.js'
import { meantInClear } from '../../support/secret-search.js'
import { runTurn } from '../../support/turns.js'
import { askPage, outboxWith, pathOfUrl } from '../outbox/support.js'
import { openVaultOf } from '../secrets/support.js'
import { jpegWithGps } from './pictures.js'

const VALUE = 'tr0ub4dor&3-and-more'
const GROUPS = ['share', 'agent', 'agents', 'secrets', 'activity', 'settings']

t.test('sharing conversations', async t => {
  const daemon = await outboxWith(t, GROUPS, { files: { 'site/a.txt': 'a', 'notes.txt': 'x' } })
  const { client, data, url, workspace } = daemon
  const [mai, ada, vic] = ['mai', 'ada', 'vic'].map(name => clientOf(daemon, `${name}@example.org`))
  await openVaultOf(daemon)
  await client.call('POST /secrets', { key: 'HOOK', value: VALUE })
  const create = (input: Partial<Input<Api, 'POST /share'>> & { conversationId: string }) =>
    mai!.call('POST /share', { title: 'A title', detail: 'messages', ...input })
  const pageOf = async (address: string | undefined) => (await askPage(url, pathOfUrl(address))).body.toString()
  const statusOf = async (address: string | undefined) => (await askPage(url, pathOfUrl(address))).status
  const activity = async (type: string) => (await client.call('GET /activity', { type })).events
  await runTurn(client, 'first', 'say Hello there')

  await t.test('without a credential and with too little of one nothing is shared', async t => {
    const asked = { conversationId: 'first', title: 'T', detail: 'messages' }
    for (const [method, path, body, refused] of [
      ['GET', '/share', undefined, []],
      ['POST', '/share/preview', asked, ['read', 'vic']],
      ['POST', '/share', asked, ['read', 'drive', 'land', 'vic', 'cas']],
      ['POST', '/share/update', { id: 'x' }, ['read', 'drive', 'land', 'vic', 'cas']],
      ['POST', '/share/remove', { id: 'x' }, ['read', 'drive', 'land', 'vic', 'cas']],
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
    t.same((await vic!.call('GET /share', {})).shares, [])
  })

  await t.test('what cannot be shared is refused, and nothing is stored', async t => {
    for (const [input, status] of [
      [{ conversationId: 'nobody' }, 404],
      [{ conversationId: 'first', title: '' }, 400],
      [{ conversationId: 'first', title: ' ' }, 400],
      [{ conversationId: 'first', title: 'x'.repeat(81) }, 400],
      [{ conversationId: 'first', detail: 'all' as 'messages' }, 400],
      [{ conversationId: 'first', expiresAt: Date.now() - 1 }, 422],
    ] as const)
      t.equal((await refusalOf(() => create(input))).status, status, JSON.stringify(input))
    t.equal((await refusalOf(() => mai!.call('POST /share/update', { id: 'nothing' }))).status, 404)
    t.equal((await refusalOf(() => mai!.call('POST /share/remove', { id: '../x' }))).status, 400)
    t.same(await mai!.call('POST /share/remove', { id: 'nothing' }), { ok: true, removed: false })
    t.notOk(existsSync(join(data, 'share/pages')))
  })

  await t.test('no stored value leaves, from a prompt, an output or a change', async t => {
    meantInClear(daemon, 'workspace: key.txt', 'the turn wrote it there')
    meantInClear(daemon, 'workspace: twice.sh', 'the script that prints it')
    writeFileSync(join(workspace, 'twice.sh'), `echo 'the key is ${VALUE}'`)
    await runTurn(client, 'keys', `write key.txt\n| ${VALUE}\nrun sh twice.sh\nsay done in ${workspace}/x`)
    const asked = { conversationId: 'keys', detail: 'everything', title: 'Keys' } as const
    const preview = await mai!.call('POST /share/preview', asked)
    const share = await create(asked)
    const page = await pageOf(share.url)
    t.equal(preview.html, page)
    t.same(preview.redactions, share.redactions)
    for (const hidden of [VALUE, 'HOOK', workspace, data, 'mai@example.org', 'owner@sandbox.local'])
      t.notMatch(page, hidden, hidden)
    const count = (kind: string) => share.redactions.find(each => each.kind === kind)?.count
    t.equal(count('secret'), page.split('[redacted]').length - 1)
    t.equal(count('secret'), 3)
    t.match(page, 'the key is [redacted]')
    t.match(page, /\+\[redacted\]/)
    t.equal(count('path'), 2)
    t.match(page, 'done in ~/x')
  })

  await t.test('words of people and agents alone are in a page of messages', async t => {
    await runTurn(client, 'both', 'think the hidden thought\nrun echo the output\nsay the answer')
    const { url: words } = await create({ conversationId: 'both' })
    const { url: all } = await create({ conversationId: 'both', detail: 'everything' })
    t.match(await pageOf(words), 'the answer')
    const said = (await pageOf(words)).replace(/<article class="person">[^]*?<\/article>/, '')
    for (const hidden of ['the output', 'the hidden thought', '<details>']) t.notMatch(said, hidden, hidden)
    for (const shown of ['the output', 'the hidden thought', 'the answer']) t.match(await pageOf(all), shown)
    t.match(await pageOf(all), /<p class="who">Person <time/)
  })

  await t.test('a page stays as it was until it is taken again under its address', async t => {
    writeFileSync(join(workspace, 'photo.jpg'), jpegWithGps())
    writeFileSync(join(workspace, 'drawing.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>')
    const attachments = ['photo.jpg', 'drawing.svg']
    await runTurn(client, 'grows', 'say one', { attachments })
    const share = await create({ conversationId: 'grows', detail: 'everything', title: 'Größe & more!' })
    t.match(share, { id: /^gr-e-more-[a-z2-7]{26}$/, title: 'Größe & more!', pictures: 1, stale: false, opened: 0 })
    const before = await pageOf(share.url)
    const [, picture = ''] = /<img src="(files\/[^"]+)"/.exec(before) ?? []
    const served = await askPage(url, pathOfUrl(share.url) + picture)
    t.match(served, { status: 200, headers: { 'content-type': 'image/jpeg' } })
    t.notMatch(served.body.toString('latin1'), /GPS-SECRET|51\.5/)
    t.match(before, 'File: drawing.svg')
    await runTurn(client, 'grows', 'say two')
    t.equal(await pageOf(share.url), before)
    t.match((await client.call('GET /share', { conversationId: 'grows' })).shares, exactly({ stale: true, opened: 2 }))
    const again = await mai!.call('POST /share/update', { id: share.id, expiresAt: Date.now() + 60_000 })
    t.match(again, { id: share.id, url: share.url, stale: false, expiresAt: Number })
    t.match(await pageOf(share.url), '<p dir="auto">two</p>')
    rmSync(join(workspace, 'photo.jpg'))
    const last = await mai!.call('POST /share/update', { id: share.id, expiresAt: null })
    t.match(last, { expiresAt: undefined, pictures: 0 })
    t.equal((await askPage(url, pathOfUrl(share.url) + picture)).status, 404, 'a picture that is not shown any more')
    t.equal(readdirSync(join(data, 'share/pages', share.id)).length, 1)
    t.match(await activity('share.updated'), exactly({ actor: 'mai@example.org' }, {}))
  })

  await t.test('pages are sent with a policy that lets nothing run, and a guess finds nothing', async t => {
    const { url: address, id } = await create({ conversationId: 'first' })
    const path = pathOfUrl(address)
    t.match(await askPage(url, path), {
      status: 200,
      headers: {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': /^default-src 'none'; img-src 'self'; style-src 'unsafe-inline'; base-uri 'none'/,
        'referrer-policy': 'no-referrer',
        'x-robots-tag': 'noindex',
      },
    })
    t.match(await askPage(url, path.slice(0, -1)), { status: 301, headers: { location: `${id}/` } })
    await mai!.call('POST /share/remove', { id })
    const gone = await askPage(url, path, { accept: 'text/html' })
    t.equal(gone.status, 404)
    const paths = [`${path}index.html`, `${path}files/`, `${path}..%2f`, `${path}%00`, '/s/', '/s/x/', `/s/${id}a/`]
    for (const each of paths) {
      const answer = await askPage(url, each, { accept: 'text/html' })
      t.equal(answer.status, 404, each)
      t.ok(answer.body.equals(gone.body), each)
    }
  })

  await t.test('people limited to areas do not see the shares of other conversations', async t => {
    t.same((await ada!.call('GET /share', {})).shares, [])
    t.ok((await vic!.call('GET /share', {})).shares.length > 2)
  })

  await t.test('an expired page ends at once, and so does that of a conversation that is purged', async t => {
    const expiresAt = Date.now() + 400
    const short = await create({ conversationId: 'first', expiresAt })
    t.equal(await statusOf(short.url), 200)
    await new Promise(resolve => setTimeout(resolve, expiresAt - Date.now() + 5))
    t.equal(await statusOf(short.url), 404)
    const long = await create({ conversationId: 'first' })
    await client.call('POST /agents/archive', { ids: ['first'] })
    t.equal(await statusOf(long.url), 200)
    await client.call('POST /agents/purge', { ids: ['first'] })
    while ((await statusOf(long.url)) !== 404) await new Promise(resolve => setTimeout(resolve, 10))
    t.match(await refusalOf(() => mai!.call('POST /share/update', { id: long.id })), { status: 404 })
    while (existsSync(join(data, 'share/pages', long.id))) await new Promise(resolve => setTimeout(resolve, 10))
  })

  await t.test('10,000 guesses are answered as a page that was taken down, until there are too many', async t => {
    const bodies = new Set<string>()
    const counts = new Map<number, number>()
    for (let at = 0; at < 400; at++) {
      const { status, body } = await askPage(url, `/s/guess-${at}-aaaaaaaaaaaaaaaaaaaaaaaaaa/`)
      counts.set(status, (counts.get(status) ?? 0) + 1)
      if (status === 404) bodies.add(body.toString())
    }
    t.equal(bodies.size, 1)
    t.same([...counts.keys()].sort(), [404, 429])
  })
})

t.test('a deployment that serves nothing shares nothing', async t => {
  const { client } = await daemonWith(t, ['share', 'agent', 'agents', 'settings'], {
    deployment: { public: { serve: 'off' } },
  })
  await runTurn(client, 'c', 'say hi')
  const asked = { conversationId: 'c', detail: 'messages', title: 'T' } as const
  t.match(await refusalOf(() => client.call('POST /share', asked)), { status: 409 })
  t.match(await client.call('POST /share/preview', asked), { messages: 2 })
})

t.test('a page goes at the next start if its conversation is gone for good by then', async t => {
  const first = await daemonWith(t, ['share', 'agent', 'agents', 'settings'])
  const { client, workspace, data } = first
  for (const conversationId of ['gone', 'kept']) {
    await runTurn(client, conversationId, 'say hi')
    await client.call('POST /share', { conversationId, detail: 'messages', title: conversationId })
  }
  await first.stop()
  const kept = { id: 'kept', title: 'kept', updatedAt: 1, startedAt: 1, state: 'live', provider: 'script' } as const
  const next = await daemonWith(t, ['share', 'settings'], {
    ...{ workspace, data },
    fakes: {
      'agent.record': ({ id }) =>
        id === 'gone'
          ? refuse('not-found', 'it was purged')
          : { ...kept, harness: 'native' as const, total: 2, openedBy: 'ada@example.org', messages: [] },
    },
  })
  const listed = async () => (await next.client.call('GET /share', {})).shares
  while ((await listed()).length > 1) await new Promise(resolve => setTimeout(resolve, 10))
  t.match(await listed(), exactly({ conversationId: 'kept' }))
})
