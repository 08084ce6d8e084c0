import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { exactly } from '../../support/lists.js'
import { layTraps, workspaceWorld } from './support.js'

const hashOf = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex')
const INBOX = '.sandbox/records/artifacts/attachments/'

void t.test('uploads', async t => {
  const { daemon, ask } = await workspaceWorld(t, { files: { 'a.md': 'one\n', 'docs2/b.md': 'b' } })
  const { workspace } = daemon
  layTraps(workspace, join(daemon.data, '..', 'outside'))
  await daemon.client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })

  const send = async (
    query: { [name: string]: string | number },
    body: Buffer | string = Buffer.alloc(0),
    headers: { [name: string]: string } = {},
  ) => {
    const fields = new URLSearchParams(
      Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
    )
    const response = await daemon.fetch(`/workspace/upload?${fields}`, {
      method: 'POST',
      body: new Uint8Array(Buffer.from(body)),
      headers: { 'content-type': 'application/octet-stream', ...headers },
    })
    return { status: response.status, ...((await response.json()) as { [field: string]: unknown }) }
  }
  const staged = () => {
    const folder = join(workspace, '.sandbox/local/uploads')
    return existsSync(folder) ? readdirSync(folder) : []
  }

  await t.test('a file is uploaded whole, as bytes and as JSON, and stamped', async t => {
    const bytes = randomBytes(100_000)
    t.match(await send({ path: 'new/x.bin', mtime: 1_577_934_245_000 }, bytes), {
      status: 200,
      ok: true,
      path: 'new/x.bin',
      received: 100_000,
      done: true,
      hash: hashOf(bytes),
    })
    t.ok(readFileSync(join(workspace, 'new/x.bin')).equals(bytes))
    t.equal(statSync(join(workspace, 'new/x.bin')).mtimeMs, 1_577_934_245_000)
    const json = await daemon.client.call('POST /workspace/upload', { path: 'j', content: 'aGVsbG8=' })
    t.match(json, { received: 5, done: true, hash: hashOf('hello') })
    t.match(await send({ path: 'j', offset: 3 }, 'P!!'), { received: 6, hash: hashOf('helP!!') })
    t.equal((await send({ path: 'j', offset: 7 }, 'x')).status, 400)
    t.same(staged(), [])
  })

  await t.test('parts are collected until the file is whole, and a part may come again', async t => {
    const bytes = randomBytes(250_000)
    const part = (from: number, to: number) =>
      send({ path: 'a.md', size: bytes.length, offset: from }, bytes.subarray(from, to))
    t.match(await part(0, 100_000), { status: 200, received: 100_000, done: false })
    t.equal(readFileSync(join(workspace, 'a.md'), 'utf8'), 'one\n', 'the file is the old one until then')
    t.match(await part(200_000, 250_000), { status: 409, received: 100_000 })
    t.match(await part(50_000, 150_000), { status: 200, received: 150_000 })
    t.match(await send({ path: 'a.md', size: bytes.length, offset: 0 }), { received: 150_000, done: false })
    t.equal((await send({ path: 'a.md', size: bytes.length, offset: 150_000 }, randomBytes(200_000))).status, 400)
    t.match(await part(150_000, 250_000), { status: 200, received: 250_000, done: true, hash: hashOf(bytes) })
    t.ok(readFileSync(join(workspace, 'a.md')).equals(bytes))
    t.same(staged(), [])
    t.match(await send({ path: 'empty', size: 0 }), { received: 0, done: true, hash: hashOf('') })
  })

  await t.test('when an upload and a save change one file, the later one is refused', async t => {
    writeFileSync(join(workspace, 'both'), 'base')
    const query = { path: 'both', size: 4, baseHash: hashOf('base') }
    t.match(await send(query, 'ne'), { status: 200, done: false })
    await daemon.client.call('PUT /workspace/file', { path: 'both', content: 'saved' })
    t.match(await send({ ...query, offset: 2 }, 'w!'), { status: 409, hash: hashOf('saved') })
    t.equal(readFileSync(join(workspace, 'both'), 'utf8'), 'saved')
  })

  await t.test('invalid uploads are refused and leave nothing behind', async t => {
    mkdirSync(join(workspace, 'lib/.git'), { recursive: true })
    const before = staged().length
    const refused: [number, { [name: string]: string | number }][] = [
      [400, { path: '../x' }],
      [400, { path: 'a\nb' }],
      [400, { path: 'docs/out' }],
      [400, { path: 'x', offset: -1 }],
      [400, { path: 'x', size: 10_737_418_241 }],
      [400, { path: 'x', baseHash: 'y' }],
      [404, { path: '.git/x' }],
      [404, { path: '.sandbox/config/x' }],
      [409, { path: 'docs' }],
      [409, { path: 'lib/.git/config' }],
      [409, { path: 'a.md/x', size: 1 }],
    ]
    for (const [status, query] of refused) t.equal((await send(query, 'x')).status, status, JSON.stringify(query))
    t.equal((await send({ path: 'x' }, 'x', { 'content-type': 'text/plain' })).status, 415)
    const forged = await ask('mai', '/workspace/upload', 'POST', {
      path: 'x',
      bytes: { path: '/etc/hostname', name: '', type: '', bytes: 3 },
    })
    t.equal(forged.status, 400, 'no JSON names a file of the machine')
    t.notOk(existsSync(join(workspace, 'x')))
    t.equal(staged().length, before)
  })

  await t.test('collaborators and tokens upload attachments, and nothing else', async t => {
    const { token } = await daemon.token('drive')
    const as = async (headers: { [name: string]: string }, path: string) => {
      const response = await fetch(`${daemon.url}/workspace/upload?path=${path}`, {
        method: 'POST',
        body: 'x',
        headers: { 'content-type': 'application/octet-stream', ...headers },
      })
      return response.status
    }
    const both: { [name: string]: string }[] = [
      { authorization: 'Bearer ann@example.org' },
      { 'x-sandbox-control': token },
    ]
    for (const headers of both) {
      t.equal(await as(headers, 'docs/x'), 403)
      t.equal(await as(headers, `${INBOX}u-1/x.png`), 200)
    }
    t.equal(await as({ authorization: 'Bearer vic@example.org' }, `${INBOX}u-1/x.png`), 403)
    t.equal(await as({}, `${INBOX}u-1/x.png`), 401)
  })

  await t.test('files that are here with the same size and second need not be sent', async t => {
    utimesSync(join(workspace, 'docs/a.md'), 1_577_934_245.9, 1_577_934_245.9)
    const diff = (files: object[]) => ask('ann', '/workspace/upload-diff', 'POST', { files })
    const answer = await diff([
      { path: 'docs/a.md', size: 4, mtime: 1_577_934_245_100 },
      { path: 'docs/a.md', size: 5, mtime: 1_577_934_245_100 },
      { path: 'docs/a.md', size: 4, mtime: 1_577_934_244_100 },
      { path: '../x', size: 4, mtime: 0 },
      { path: 'docs2/b.md', size: 1, mtime: Math.floor(statSync(join(workspace, 'docs2/b.md')).mtimeMs) },
    ])
    t.same(await answer.json(), { skip: ['docs/a.md'] })
    const many = Array.from({ length: 20_001 }, () => ({ path: 'x', size: 1, mtime: 1 }))
    t.match([(await diff(many)).status], exactly(413))
  })
})
