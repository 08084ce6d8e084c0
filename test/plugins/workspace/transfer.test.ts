import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { exactly } from '../../support/lists.js'
import { layTraps, workspaceWorld } from './support.js'

const noUnzip = ['/usr/bin/unzip', '/usr/local/bin/unzip'].some(existsSync) ? false : 'unzip is not installed'

void t.test('downloads without headers', async t => {
  const { daemon, as, ask } = await workspaceWorld(t, {
    files: { '.gitignore': 'dist/\n', 'src/ä.ts': 'a', 'src/deep/run.sh': '#!/bin/sh\n', 'page.html': '<b>x</b>' },
  })
  const { client, workspace } = daemon
  layTraps(workspace, join(daemon.data, '..', 'outside'))
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  const film = randomBytes(300_000)
  writeFileSync(join(workspace, 'film.mp4'), film)
  const open = (path: string, headers: { [name: string]: string } = {}) => fetch(daemon.url + path, { headers })

  await t.test('tickets are for callers who may read, and each for one thing', async t => {
    t.equal((await fetch(`${daemon.url}/workspace/media-ticket`, { method: 'POST' })).status, 401)
    t.equal((await open('/workspace/media?ticket=x')).status, 401)
    t.equal((await open('/workspace/download?ticket=x')).status, 401)
    t.equal((await open('/workspace/media')).status, 400)
    const { ticket } = await client.call('POST /workspace/media-ticket', { path: 'film.mp4' })
    t.equal((await open(`/workspace/download?ticket=${ticket}`)).status, 401)
    t.equal((await open(`/workspace/media?ticket=${ticket}&path=page.html`)).status, 401)
    t.equal((await open(`/workspace/media?ticket=${ticket}&path=film.mp4`)).status, 200)
    const refused: [number, string][] = [
      [400, '../x'],
      [400, 'docs/out'],
      [404, 'gone'],
      [404, '.git/config'],
      [422, 'src'],
      [422, 'pipe'],
    ]
    for (const [status, path] of refused) {
      t.match(await refusalOf(() => client.call('POST /workspace/media-ticket', { path })), { status }, path)
      if (status !== 422 || path === 'pipe')
        t.match(await refusalOf(() => client.call('POST /workspace/download-ticket', { paths: ['page.html', path] })), {
          status,
        })
    }
    t.equal((await ask('ann', '/workspace/media-ticket', 'POST', { path: 'film.mp4' })).status, 404)
    t.equal((await ask('ann', '/workspace/download-ticket', 'POST', { paths: ['docs', 'src'] })).status, 404)
  })

  await t.test('a player reads the ranges it wants', async t => {
    const { ticket } = await as('vic').call('POST /workspace/media-ticket', { path: 'film.mp4' })
    const path = `/workspace/media?ticket=${ticket}`
    const whole = await open(path)
    t.same(
      [whole.status, whole.headers.get('content-type'), whole.headers.get('accept-ranges')],
      [200, 'video/mp4', 'bytes'],
    )
    t.ok(film.equals(Buffer.from(await whole.arrayBuffer())))
    const etag = whole.headers.get('etag')!
    for (const [range, first, last] of [
      ['bytes=0-', 0, 299_999],
      ['bytes=1000-1999', 1000, 1999],
      ['bytes=-100', 299_900, 299_999],
      ['bytes=299999-400000', 299_999, 299_999],
    ] as const) {
      const part = await open(path, { range, 'if-range': etag })
      t.same([part.status, part.headers.get('content-range')], [206, `bytes ${first}-${last}/300000`])
      t.ok(film.subarray(first, last + 1).equals(Buffer.from(await part.arrayBuffer())), range)
    }
    t.equal((await open(path, { range: 'bytes=300000-' })).status, 416)
    t.equal((await open(path, { range: 'bytes=0-1', 'if-range': '"other"' })).status, 200)
    t.equal((await open(path, { range: 'bytes=0-1,5-6' })).status, 200)
    const saved = await open(`${path}&download=true`)
    t.match(saved.headers.get('content-disposition')!, /^attachment; filename="film.mp4"/)
    await saved.body?.cancel()
    writeFileSync(join(workspace, 'other'), 'other')
    execFileSync('mv', [join(workspace, 'other'), join(workspace, 'film.mp4')])
    t.equal((await open(path)).status, 404, 'another file of that name is not the one')
  })

  await t.test('ranges of a film of 5 GiB hold its bytes, also beyond 4 GiB', async t => {
    const size = 5 * 1024 ** 3
    const marks = [0, 2 ** 31 - 4, 2 ** 32 - 4, size - 8]
    const file = openSync(join(workspace, 'long.mp4'), 'w')
    for (const at of marks) writeSync(file, `mark ${marks.indexOf(at)}\n`, at)
    ftruncateSync(file, size)
    closeSync(file)
    const { ticket } = await client.call('POST /workspace/media-ticket', { path: 'long.mp4' })
    for (const [index, at] of marks.entries()) {
      const part = await open(`/workspace/media?ticket=${ticket}`, { range: `bytes=${at}-${at + 6}` })
      t.same([part.status, part.headers.get('content-range')], [206, `bytes ${at}-${at + 6}/${size}`])
      t.equal(await part.text(), `mark ${index}\n`)
    }
    rmSync(join(workspace, 'long.mp4'))
  })

  await t.test('types that a browser would run are sent as sandboxed downloads', async t => {
    const { ticket } = await client.call('POST /workspace/media-ticket', { path: 'page.html' })
    const { headers } = await open(`/workspace/media?ticket=${ticket}`)
    t.match(
      ['content-security-policy', 'content-disposition', 'x-content-type-options'].map(name => headers.get(name)),
      exactly('sandbox', /^attachment/, 'nosniff'),
    )
  })

  await t.test('an expired ticket is refused', async t => {
    const media = await client.call('POST /workspace/media-ticket', { path: 'page.html' })
    const download = await client.call('POST /workspace/download-ticket', { paths: ['page.html'] })
    const places = [
      [`/workspace/media?ticket=${media.ticket}`, media.expiresAt],
      [`/workspace/download?ticket=${download.ticket}`, download.expiresAt],
    ] as const
    for (const [path, expiresAt] of places) {
      let moment = expiresAt - 1
      const restore = t.capture(Date, 'now', () => moment).restore
      t.equal((await open(path)).status, 200, 'the last moment')
      moment = expiresAt
      const refused = await open(path)
      restore()
      t.equal(refused.status, 401)
      t.match(await refused.json(), { message: /expired: ask for another one/ })
    }
  })

  await t.test('a ticket ends with the token that it was minted with', async t => {
    const token = await daemon.token('read', 'player')
    const { ticket } = await token.client.call('POST /workspace/media-ticket', { path: 'page.html' })
    t.equal((await open(`/workspace/media?ticket=${ticket}`)).status, 200)
    await daemon.auth.handlers['kernel.token.revoke']({ id: token.id }, {
      caller: { kind: 'session', actor: 'owner@sandbox.local', role: 'owner' },
      signal: new AbortController().signal,
      trusted: true,
    } as never)
    for (;;) {
      const { status } = await open(`/workspace/media?ticket=${ticket}`)
      if (status === 401) break
      await new Promise(resolve => setTimeout(resolve, 5))
    }
    t.pass('it is refused then')
  })

  await t.test(
    'a ZIP holds the files with their names, modes and links, without what tools ignore',
    { skip: noUnzip },
    async t => {
      mkdirSync(join(workspace, 'src/dist'))
      mkdirSync(join(workspace, 'src/node_modules'))
      mkdirSync(join(workspace, 'src/empty'))
      writeFileSync(join(workspace, 'src/dist/made'), 'x')
      writeFileSync(join(workspace, 'src/node_modules/x'), 'x')
      writeFileSync(join(workspace, 'src/large.bin'), randomBytes(1_000_000))
      execFileSync('chmod', ['755', join(workspace, 'src/deep/run.sh')])
      symlinkSync('deep/run.sh', join(workspace, 'src/link'))
      const { ticket, filename } = await client.call('POST /workspace/download-ticket', { paths: ['src', 'src/deep'] })
      t.equal(filename, 'src.zip')
      const response = await open(`/workspace/download?ticket=${ticket}`)
      t.same([response.headers.get('content-type'), response.headers.get('content-length')], ['application/zip', null])
      const zip = join(daemon.data, 'x.zip')
      writeFileSync(zip, Buffer.from(await response.arrayBuffer()))
      execFileSync('unzip', ['-tq', zip])
      const to = join(daemon.data, 'unzipped')
      execFileSync('unzip', ['-q', zip, '-d', to])
      t.same(
        execFileSync('find', ['src', '-printf', '%M %p %l\n'], { cwd: to, encoding: 'utf8' })
          .split('\n')
          .filter(Boolean)
          .map(line => line.replace(/^(.).{2}(.).{6}/, '$1$2'))
          .sort(),
        [
          '-- src/large.bin ',
          '-- src/ä.ts ',
          '-x src/deep/run.sh ',
          'dx src ',
          'dx src/deep ',
          'dx src/empty ',
          'lx src/link deep/run.sh',
        ].sort(),
      )
      const hash = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex')
      t.equal(hash(join(to, 'src/large.bin')), hash(join(workspace, 'src/large.bin')))
    },
  )

  await t.test(
    'a ZIP of many files holds the bytes of each, small and large ones mixed',
    { skip: noUnzip },
    async t => {
      const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
      const sums = new Map<string, string>()
      for (let at = 0; at < 200; at++) {
        const bytes = at % 3 === 0 ? randomBytes(at) : Buffer.from(`${at}\n`.repeat(at % 50 === 1 ? 100_000 : at))
        sums.set(`many/${at % 7}/${at}${at % 5 === 0 ? '.png' : ''}`, hash(bytes))
        mkdirSync(join(workspace, `many/${at % 7}`), { recursive: true })
        writeFileSync(join(workspace, [...sums.keys()].at(-1)!), bytes)
      }
      const { ticket } = await client.call('POST /workspace/download-ticket', { paths: ['many'] })
      const zip = join(daemon.data, 'many.zip')
      writeFileSync(zip, Buffer.from(await (await open(`/workspace/download?ticket=${ticket}`)).arrayBuffer()))
      execFileSync('unzip', ['-q', zip, '-d', join(daemon.data, 'many')])
      for (const [path, sum] of sums) t.equal(hash(readFileSync(join(daemon.data, 'many', path))), sum, path)
      const listed = execFileSync('unzip', ['-Z1', zip], { encoding: 'utf8' }).trim().split('\n')
      t.same(listed.filter(name => !name.endsWith('/')).sort(), [...sums.keys()].sort())
      rmSync(join(workspace, 'many'), { recursive: true })
    },
  )

  await t.test('files that are gone by then are named in the last entry', { skip: noUnzip }, async t => {
    const several = await client.call('POST /workspace/download-ticket', { paths: ['src/ä.ts', 'page.html'] })
    t.equal(several.filename, 'workspace.zip')
    rmSync(join(workspace, 'page.html'))
    const response = await open(`/workspace/download?ticket=${several.ticket}`)
    const zip = join(daemon.data, 'gone.zip')
    writeFileSync(zip, Buffer.from(await response.arrayBuffer()))
    t.equal(execFileSync('unzip', ['-p', zip, '_skipped.txt'], { encoding: 'utf8' }), 'page.html\n')
  })

  await t.test('two downloads run at once, and a third is refused with retry-after', async t => {
    execFileSync('truncate', ['-s', '200M', join(workspace, 'src/huge.mp4')])
    const { ticket } = await client.call('POST /workspace/download-ticket', { paths: ['src'] })
    const stop = new AbortController()
    const running = await Promise.all(
      [1, 2].map(() => fetch(`${daemon.url}/workspace/download?ticket=${ticket}`, { signal: stop.signal })),
    )
    t.same(
      running.map(({ status }) => status),
      [200, 200],
    )
    const third = await open(`/workspace/download?ticket=${ticket}`)
    t.match([third.status, third.headers.get('retry-after')], exactly(429, /^\d+$/))
    stop.abort()
    for (;;) {
      const next = await open(`/workspace/download?ticket=${ticket}`)
      await next.body?.cancel()
      if (next.status === 200) break
      await new Promise(resolve => setTimeout(resolve, 20))
    }
    t.pass('one that was cut makes room')
  })
})
