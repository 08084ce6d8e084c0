import { once } from 'node:events'
import { readdirSync, readFileSync, symlinkSync, mkdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { extensionDaemon, type ExtensionDaemon } from '../support/extensions/world.js'
import { tookLess } from '../support/in-time.js'
import { exactly } from '../support/lists.js'
import { noWall } from '../support/walls.js'
import { tightBuilder } from '../../sdk/node/wall/builders.js'
import type { WallKind } from '../../sdk/node/wall/wall.js'
import { walled } from './support.js'

const MIB = 1024 * 1024

/** Returns the result of each attempt by name; an attempt that throws was refused. */
const ATTEMPTS = `
  import fs from 'node:fs'
  import net from 'node:net'
  import http from 'node:http'
  import dgram from 'node:dgram'
  import dns from 'node:dns/promises'
  import { createRequire } from 'node:module'
  const attempts = {}
  export const tried = async () => {
    const found = {}
    for (const [name, attempt] of Object.entries(attempts)) {
      try {
        found[name] = { did: String(await attempt()).slice(0, 300) }
      } catch (error) {
        found[name] = { refused: String(error?.code ?? error).slice(0, 100) }
      }
    }
    return found
  }
  const connects = target => new Promise((done, failed) => {
    const socket = net.connect({ ...target, timeout: 2000 })
    socket.on('connect', () => done('connected'))
    socket.on('error', failed)
    socket.on('timeout', () => failed(new Error('timeout')))
  })
`

/** Processes whose command line has a text. */
const processesWith = (text: string): string[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(pid => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text)
      } catch {
        return false
      }
    })

/** An extension that only answers, to check that others are not affected. */
const QUIET = {
  server: `export const activate = host => { host.routes.handle('GET /alive', {}, () => ({ body: { alive: true } })) }`,
}

/** Checks that the daemon answers during some work: nearly always within 100 ms, and always within a second. */
const answersWhile = async (t: Test, daemon: ExtensionDaemon, work: Promise<unknown>): Promise<void> => {
  const times: number[] = []
  let over = false
  void work.finally(() => (over = true))
  while (!over) {
    const began = performance.now()
    await daemon.fetch('/health').then(response => response.arrayBuffer())
    times.push(performance.now() - began)
    await delay(10)
  }
  times.sort((one, other) => one - other)
  const [most, all] = [times[Math.floor(times.length * 0.9)]!, times.at(-1)!]
  t.comment(`${times.length} answers, 90 % of them within ${Math.round(most)} ms, all within ${Math.round(all)} ms`)
  t.ok(tookLess(most, 100), `90 % within ${Math.round(most)} ms`)
  t.ok(all < 1_000, `all within ${Math.round(all)} ms`)
}

/** What differs where the wall is built without bubblewrap: what a process sees, and how it is ended. */
const OF_THE_WALL = ['allocates without end', 'blocks its loop', 'exits']
const UNSHARE = noWall((await tightBuilder('unshare')) !== undefined, 'unshare')

const attacks = async (t: Test, wall?: WallKind): Promise<void> => {
  const daemon = await extensionDaemon(t, {
    ...(wall && { wall }),
    groups: ['workspace', 'agents', 'agent', 'settings', 'activity', 'areas', 'secrets', 'git', 'history', 'system'],
    limits: {
      startMs: wall ? 20_000 : 6_000,
      pingEveryMs: 200,
      // Other backends have a low priority too, and answer late where a machine is busy.
      pingMs: wall ? 10_000 : 6_000,
      lookMs: 100,
      cpuMs: 2_500,
      cpuShare: 0.15,
      heapMiB: 48,
      resident: 256 * MIB,
      backoff: { first: 20_000, most: 60_000 },
    },
    files: { 'README.md': '# work\n', 'secret.txt': 'of the workspace\n', 'docs/a.md': 'a\n' },
  })
  await daemon.run('good.quiet', QUIET)
  const stillAlive = async (t: Test) =>
    t.match(await daemon.ask('good.quiet', '/alive'), { status: 200, body: { alive: true } }, 'others are not affected')

  await t.test(
    'reads nothing outside its folders, and reaches no process, socket or module of the machine',
    async t => {
      const near = createServer(socket => socket.end()).listen(0, '127.0.0.1')
      await once(near, 'listening')
      t.teardown(() => near.close())
      let connections = 0
      near.on('connection', () => connections++)
      const { port } = near.address() as { port: number }
      mkdirSync(join(daemon.dataDirOf('evil.reads'), 'x'), { recursive: true })
      symlinkSync('/etc/passwd', join(daemon.dataDirOf('evil.reads'), 'link'))
      const status = await daemon.run('evil.reads', {
        server: `${ATTEMPTS}
        const require = createRequire('/extension/server.js')
        const paths = {
          passwd: '/etc/passwd', data: ${JSON.stringify(daemon.data)}, workspace: ${JSON.stringify(daemon.workspace)},
          environ: '/proc/1/environ', parent: '/proc/' + process.ppid + '/environ', mem: '/proc/self/mem',
          other: '/extension/../other', root: '/', runtime: '/runtime/node', sys: '/sys/class/net', dev: '/dev/shm',
          machineKey: ${JSON.stringify(join(daemon.data, 'machine.key'))},
        }
        for (const [name, path] of Object.entries(paths)) {
          attempts['read ' + name] = () =>
            fs.statSync(path).isDirectory() ? fs.readdirSync(path) : fs.readFileSync(path).length
        }
        attempts['write code'] = () => fs.writeFileSync('/extension/server.js', '')
        attempts['write outside'] = () => fs.writeFileSync('/tmp/x', '')
        attempts['write runtime'] = () => fs.writeFileSync('/runtime/runner.js', '')
        attempts['link out'] = () => { fs.symlinkSync('/etc', '/data/etc');
          return fs.readdirSync('/data/etc').length }
        attempts['planted link'] = () => fs.readFileSync('/data/link', 'utf8')
        attempts['spawn'] = () => require('node:child_process').execFileSync('/bin/sh', ['-c', 'id'])
        attempts['fork'] = () => require('node:child_process').fork('/extension/server.js').pid
        attempts['worker'] = () => new (require('node:worker_threads').Worker)('1', { eval: true }).threadId
        attempts['addon'] = () => process.dlopen({ exports: {} }, '/extension/x.node')
        attempts['sqlite'] = () => require('node:sqlite')
        attempts['inspector'] = () => { require('node:inspector').open(0); return 'open' }
        attempts['wasi'] = () => new (require('node:wasi').WASI)({ version: 'preview1',
          preopens: { '/': '/' } }) && 'wasi'
        attempts['binding'] = () => Object.keys(process.binding('spawn_sync'))
        attempts['report'] = () => process.report.writeReport('/tmp/report.json')
        attempts['snapshot'] = () => require('node:v8').writeHeapSnapshot('/runtime/heap')
        attempts['signal all'] = () => process.kill(-1, 0)
        attempts['priority'] = () => require('node:os').setPriority(process.pid, -20)
        attempts['uid'] = () => process.setuid(4711)
        attempts['loopback'] = () => connects({ host: '127.0.0.1', port: ${port} })
        attempts['daemon'] = () => connects({ host: '127.0.0.1', port: ${new URL(daemon.url).port} })
        attempts['public'] = () => connects({ host: '192.0.2.1', port: 80 })
        attempts['unix'] = () => connects({ path: ${JSON.stringify(daemon.socket ?? '/run/x')} })
        attempts['abstract'] = () => connects({ path: '\\0sandbox' })
        attempts['fetch'] = () => fetch('http://127.0.0.1:${port}/')
        attempts['names'] = () => dns.lookup('example.org').then(() => 'resolved')
        attempts['udp'] = () => new Promise((done, failed) => {
          const socket = dgram.createSocket('udp4')
          socket.send('x', 53, '192.0.2.1', error => (error ? failed(error) : done('sent')))
        })
        export const activate = host => {
          host.routes.handle('GET /tried', {}, async () => ({ body: await tried() }))
          host.routes.handle('GET /own', {}, () => {
            process.kill(process.ppid, 'SIGKILL')
            fs.writeFileSync('/data/mine', 'kept')
            return { body: { env: Object.keys(process.env).sort(), argv: process.argv,
              read: fs.readFileSync('/data/mine', 'utf8'),
              interfaces: Object.keys(require('node:os').networkInterfaces()),
                nice: require('node:os').getPriority() } }
          })
        }`,
      })
      t.match(status, { state: 'running' })
      const { body } = await daemon.ask('evil.reads', '/tried')
      const did = Object.entries(body as { [name: string]: { did?: string } }).filter(
        ([, { did }]) => did !== undefined,
      )
      t.same(did, [], 'every attempt is refused')
      t.equal(connections, 0, 'nothing was connected')
      const { body: own } = await daemon.ask('evil.reads', '/own')
      t.match(own, { read: 'kept' })
      t.ok((own as { nice: number }).nice >= 10)
      t.same(
        (own as { env: string[] }).env.filter(
          name => !['LANG', 'NODE_ENV', 'PWD', 'TZ', 'PATH', 'SHLVL', '_'].includes(name),
        ),
        [],
      )
      await stillAlive(t)
    },
  )

  const hostile: { [name: string]: { readonly body: string; readonly why: RegExp } } = {
    'allocates without end': {
      body: `const all = []
        setInterval(() => { for (let n = 0; n < 20; n++) all.push(Buffer.alloc(${8 * MIB}, 1)) }, 10)`,
      why: /MiB of memory|ended/,
    },
    'fills its heap': {
      body: `const all = []; setInterval(() => { for (let n = 0; n < 1e5; n++) all.push({ n, text: 'x' + n }) }, 1)`,
      why: /memory|ended|did not answer/,
    },
    'blocks its loop': { body: `setTimeout(() => { for (;;); }, 100)`, why: /did not answer for|% of a processor/ },
    'uses a whole processor': {
      body: `const spin = () => { const end = Date.now() + 100; while (Date.now() < end); setImmediate(spin) }; spin()`,
      why: /% of a processor/,
    },
    exits: { body: `setTimeout(() => process.exit(3), 50)`, why: /ended with 3/ },
    throws: { body: `setTimeout(() => { throw new Error('wild') }, 50)`, why: /ended with 1/ },
    'aborts itself': { body: `setTimeout(() => process.abort(), 50)`, why: /ended/ },
    'answers what was not asked': {
      body: `write({ kind: 'reply', id: 4711, value: {} })`,
      why: /answered 4711, which was not asked/,
    },
    'writes an invalid message': { body: `write({ kind: 'grant', role: 'owner' })`, why: /no message/ },
    'writes invalid JSON': { body: `raw('not json\\n')`, why: /not JSON/ },
    'writes a line without end': {
      body: `const line = 'x'.repeat(${MIB}); for (let n = 0; n < 20; n++) raw(line)`,
      why: /more than 8388608 bytes/,
    },
    'claims large parts': { body: `raw('[999999999] {"kind":"ping"}\\n')`, why: /more than 8388608 bytes/ },
    'uses a number twice': {
      body: `write(...[1, 2].map(() => ({ kind: 'request', id: 1e6, op: 'storage.get', input: { key: 'a' } })))`,
      why: /number 1000000 of a request twice/,
    },
    'has too much in flight': {
      body: `write(...Array.from({ length: 400 }, (_, n) =>
        ({ kind: 'request', id: 2e6 + n, op: 'storage.set', input: { key: 'k' + n, value: 1 } })))`,
      why: /more than 256 requests in flight/,
    },
    'nests deeper than any stack': {
      body: `const deep = '['.repeat(2e5) + ']'.repeat(2e5)
        raw('{"kind":"request","id":5,"op":"storage.set","input":{"key":"deep","value":' + deep + '}}\\n')
        setTimeout(() => process.exit(9), 300)`,
      why: /./,
    },
    'does not read its pipe': {
      body: `pipe.pause()
        const ask = n => write({ kind: 'request', id: 3e6 + n, op: 'log', input: { level: 'info', message: 'x' } })
        for (let n = 0; n < 100; n++) ask(n)`,
      why: /did not answer for/,
    },
  }
  for (const [name, { body, why }] of Object.entries(hostile)) {
    if (wall && !OF_THE_WALL.includes(name)) continue
    await t.test(`that ${name} is ended, and affects no other`, async t => {
      const id = `evil.${name.replaceAll(' ', '-')}`
      const over = (async () => {
        await daemon.begin(id, {
          server: `
            const pipe = process._getActiveHandles().find(handle => handle.fd === 3 || handle._handle?.fd === 3)
            const raw = text => pipe.write(text)
            // All at once: the answer to the first must not end the process before the last arrives.
            const write = (...messages) => raw(messages.map(message => JSON.stringify(message) + '\\n').join(''))
            export const activate = () => { ${body} }`,
        })
        return daemon.until(id, ({ state }) => state === 'error' || state === 'stopped')
      })()
      await answersWhile(t, daemon, over)
      t.match(await over, { state: 'error', detail: why })
      await stillAlive(t)
      t.match(await daemon.ask(id, '/x'), { status: 503 })
      await daemon.world.runtime!.stop(id, 'over')
    })
  }

  await t.test('leaves no process behind when it is switched off', async t => {
    await daemon.run('evil.stays', {
      server: `process.on('SIGTERM', () => {}); export const activate = host => {
        host.onStop(() => new Promise(() => {}))
        setInterval(() => {}, 10)
      }`,
    })
    const began = performance.now()
    await daemon.world.runtime!.stop('evil.stays', 'switched off')
    t.ok(performance.now() - began < 9_000, 'it has ended within 7 s')
    t.match(daemon.world.runtime!.status('evil.stays'), { state: 'stopped' })
    t.same(processesWith(daemon.dataDirOf('evil.stays')), [])
    await stillAlive(t)
  })

  if (wall) return
  await t.test('gets only what its manifest names from its host', async t => {
    await daemon.run('evil.asks', {
      manifest: {
        permissions: {
          daemon: ['GET /workspace/tree', 'GET /*/*', 'POST /*', 'GET /**', 'POST /**', 'DELETE /**', 'PUT /**'],
          sandbox: ['fs:read:docs/**', 'fs:write:docs/*.md', 'net:*', 'run:git', 'secret:OTHER'],
        },
      },
      files: {},
      server: `${ATTEMPTS}
        export const activate = host => {
          const calls = {
            secrets: ['GET /secrets', {}], reveal: ['POST /secrets/reveal', { key: 'X' }], case: ['GET /SECRETS', {}],
            dots: ['GET /workspace/../secrets', {}], encoded: ['GET /%73ecrets', {}], slash: ['GET //secrets', {}],
            inner: ['secrets.resolve', { text: '{{secret:X}}' }], kernel: ['kernel.token.mint', {}],
            token: ['POST /system/control/tokens', { label: 'x', scope: 'land' }], grant: ['POST /members', {}],
            terminal: ['POST /system/terminals', {}], settings: ['POST /settings/patch', { set: {} }],
            maintainer: ['PUT /workspace/file', { path: 'x', content: 'x' }], logs: ['GET /logs', {}],
            transcript: ['GET /agents/{id}/transcript', { id: 'x' }], own: ['GET /x/good.quiet/alive', {}],
            areas: ['POST /areas', {}], bundles: ['GET /bundles', {}], open: ['GET /health', {}],
            proto: ['__proto__', {}], traversal: ['GET /agents/{id}', { id: '../secrets' }],
          }
          for (const [name, [entry, input]] of Object.entries(calls)) attempts['call ' + name] = () =>
            host.call(entry, input)
          for (const path of ['README.md', '../x', '/etc/passwd', '.git/config', 'docs/../README.md',
            'docs/.git/config',
            '.sandbox/config/settings.json', '.sandbox/x/good.quiet/a', 'docs/out'])
            attempts['read ' + path] = () => host.files.read(path)
          for (const path of ['README.md', 'docs/a.txt', 'docs/sub/a.md', '.sandbox/x/evil',
            '.git/hooks/post-commit.md'])
            attempts['write ' + path] = () => host.files.write(path, 'evil').then(() => 'written')
          attempts['remove docs'] = () => host.files.remove('docs').then(() => 'removed')
          attempts['move'] = () => host.files.move('docs/a.md', 'README.md').then(() => 'moved')
          for (const url of ['http://127.0.0.1:${new URL(daemon.url).port}/',
            'http://localhost:${new URL(daemon.url).port}/',
            'http://[::1]:80/', 'http://[::ffff:127.0.0.1]:80/', 'http://0.0.0.0:80/', 'http://2130706433/',
              'http://10.0.0.1/',
            'http://169.254.169.254/latest', 'http://192.168.0.1/', 'file:///etc/passwd',
              'http://user:pw@192.0.2.1/'])
            attempts['fetch ' + url] = () => host.fetch(url)
          attempts['connect'] = () => host.connect({ host: '127.0.0.1', port: ${new URL(daemon.url).port} })
          attempts['websocket'] = () =>
            host.connect({ url: 'ws://127.0.0.1:${new URL(daemon.url).port}/system/terminal' })
          attempts['secret'] = () => host.secrets.ref('X')
          attempts['secret of another'] = () => host.secrets.ref('ext/good.quiet/key')
          attempts['setting'] = () => host.secrets.value('../good.quiet/key')
          attempts['secret in a request'] = () => host.fetch('http://192.0.2.1/', { headers: { a: '{{secret:X}}' } })
          attempts['program'] = () => host.processes.run('sh', ['-c', 'id'])
          attempts['program path'] = () => host.processes.run('../../bin/sh', [])
          attempts['events'] = () => new Promise((done, failed) => {
            host.events.on('agent', done); setTimeout(() => failed(new Error('no event')), 200)
          })
          attempts['tool'] = () => new Promise((done, failed) => {
            host.tools.handle('undeclared', done); setTimeout(() => failed(new Error('no call')), 100)
          })
          attempts['key'] = async () => { await host.storage.set('../../x', 1);
            return (await host.storage.list()).keys.join() === '../../x' ? Promise.reject('data alone') : 'path' }
          host.routes.handle('GET /tried', {}, async () => ({ body: await tried() }))
          host.routes.handle('GET /allowed', {}, async () => ({ body: {
            tree: typeof (await host.call('GET /workspace/tree', {})),
              doc: Buffer.from(await host.files.read('docs/a.md')).toString(),
            denied: await host.call('GET /agents/{id}', { id: 'none' }).catch(error => error.code),
            entry: await host.files.read('README.md').catch(error => ({ code: error.code, entry: error.entry })),
          } }))
        }`,
    })
    symlinkSync('/etc', join(daemon.workspace, 'docs', 'out'))
    const { body } = await daemon.ask('evil.asks', '/tried')
    const did = Object.entries(body as { [name: string]: { did?: string } }).filter(([, { did }]) => did !== undefined)
    t.same(did, [], 'every attempt is refused')
    const { body: allowed } = await daemon.ask('evil.asks', '/allowed')
    t.match(allowed, { tree: 'object', doc: 'a\n', entry: { code: 'denied', entry: 'fs:read:README.md' } })
    t.equal(readFileSync(join(daemon.workspace, 'README.md'), 'utf8'), '# work\n')
    await stillAlive(t)
  })

  await t.test('that floods its pipe is slowed down, and others are not', async t => {
    await daemon.run('evil.flood', {
      server: `export const activate = host => {
        let n = 0
        const flood = () => { for (let i = 0; i < 100; i++) { n++;
          host.log.info('x'.repeat(1000)) } setImmediate(flood) }
        setTimeout(flood, 50)
      }`,
    })
    await answersWhile(
      t,
      daemon,
      daemon.until('evil.flood', ({ state }) => state === 'error'),
    )
    await daemon.world.runtime!.stop('evil.flood', 'over')
    await stillAlive(t)
  })

  await t.test('cannot send harmful HTTP answers to clients', async t => {
    await daemon.run('evil.answers', {
      server: `export const activate = host => {
        host.routes.handle('GET /html', {}, () => ({ headers: { 'content-type': 'text/html', 'set-cookie': 'a=b',
          'content-length': '1',
          'content-security-policy': "default-src *", 'access-control-allow-origin': '*', location: '/secrets',
            'x-evil-own': 'yes',
          'x-sandbox-role': 'owner', 'transfer-encoding': 'identity', connection: 'close',
            'strict-transport-security': 'x' },
          body: Buffer.from('<script>alert(1)</script>') }))
        host.routes.handle('GET /split', {}, () => ({ headers: { 'x-evil-a': 'a\\r\\nset-cookie: b=c',
          etag: 'ok' }, body: {} }))
        host.routes.handle('GET /status', {}, () => ({ status: 101 }))
        host.routes.handle('GET /shape', {}, () => ({ status: 'fine', headers: 7 }))
        host.routes.handle('GET /throws', {}, () => { throw new Error('wild') })
        host.routes.handle('GET /head', {}, request => ({ body: { headers: request.headers, query: request.query,
          caller: request.caller } }))
        host.routes.handle('POST /write', { floor: 'viewer' }, () => ({ body: {} }))
        host.routes.handle('GET /_events', {}, () => ({ body: 'mine' }))
        host.routes.handle('GET /pollute', {}, () =>
          ({ body: JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}') }))
      }`,
    })
    const html = await daemon.ask('evil.answers', '/html')
    t.match(html, { status: 200, body: '<script>alert(1)</script>' })
    const passed = [...html.headers.keys()]
    for (const name of [
      'set-cookie',
      'location',
      'access-control-allow-origin',
      'x-sandbox-role',
      'strict-transport-security',
    ])
      t.notOk(passed.includes(name), name)
    t.equal(html.headers.get('content-security-policy'), 'sandbox')
    t.equal(html.headers.get('x-content-type-options'), 'nosniff')
    t.equal(html.headers.get('x-evil-own'), 'yes')
    const split = await daemon.ask('evil.answers', '/split')
    t.notOk(split.headers.has('x-evil-a'))
    t.notOk(split.headers.has('set-cookie'))
    for (const path of ['/status', '/shape', '/throws'])
      t.equal((await daemon.ask('evil.answers', path)).status, 500, path)
    const head = await daemon.ask('evil.answers', '/head?token=t&a=1&a=2', {
      headers: { cookie: 'session=1', 'x-forwarded-for': '1.2.3.4', 'x-sandbox-role': 'owner', 'x-mine': 'yes' },
    })
    t.match(head.body, {
      query: { a: exactly('1', '2') },
      headers: { 'x-mine': 'yes' },
      caller: { kind: 'person', role: 'owner' },
    })
    const { headers, query } = head.body as { headers: object; query: object }
    t.same(
      Object.keys(headers).filter(name => /cookie|forwarded|sandbox|authorization/.test(name)),
      [],
    )
    t.notOk('token' in query)
    const { token } = await daemon.token('read')
    const asToken = (path: string, method: string) =>
      daemon.fetch(`/x/evil.answers${path}`, { method, headers: { authorization: '', 'x-sandbox-control': token } })
    t.equal((await asToken('/head', 'GET')).status, 200)
    t.equal((await asToken('/write', 'POST')).status, 403, 'a role floor can only be raised')
    t.equal((await fetch(`${daemon.url}/x/evil.answers/head`)).status, 401)
    t.equal((await daemon.ask('evil.answers', '/pollute')).status, 200)
    t.notOk('polluted' in {}, 'no prototype is polluted')
    await stillAlive(t)
  })

  await t.test('is in the activity record when it is ended', async t => {
    const { events: entries } = (await (await daemon.fetch('/activity?limit=500')).json()) as {
      events: { type: string; actor: string }[]
    }
    const ended = entries.filter(({ type }) => type === 'extension.failed')
    t.ok(ended.length >= Object.keys(hostile).length, `${ended.length} entries`)
    t.ok(ended.every(({ actor }) => actor.startsWith('extension:evil.')))
  })
}

t.test('an extension', walled(), t => attacks(t))
t.test('an extension where bubblewrap is missing', { skip: UNSHARE }, t => attacks(t, 'unshare'))
