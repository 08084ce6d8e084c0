import { existsSync, globSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { sshFailure } from '../../../plugins/capabilities/ssh/words.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { shellTurn, walled } from '../../attack/support.js'
import { daemonWith, folderOf, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { passwordServer } from '../../support/servers/password-server.js'
import { sshKey, sshServer, withSshd } from '../../support/ssh-server.js'
import { add, capabilitiesDaemon, inner, vaultFake } from './support.js'

const me = process.env.USER ?? 'root'
const NAME = '.sandbox/config/capabilities.json'

/** Every file below the data folder and the file of connections. */
const written = ({ data, workspace }: Pick<Support, 'data' | 'workspace'>): string =>
  [...globSync(join(data, '**/*')), join(workspace, NAME)]
    .filter(path => statSync(path, { throwIfNoEntry: false })?.isFile())
    .map(path => readFileSync(path, 'latin1'))
    .join('\n')

t.test(
  'a server is met when it is connected, and turns reach it by its name',
  { ...walled(), ...withSshd() },
  async t => {
    const vault = vaultFake()
    const daemon = await daemonWith(t, ['agent', 'agents', 'capabilities'], { fakes: vault.fakes })
    const { client } = daemon
    const keys = folderOf(t)
    const [mine, other, rsa] = [sshKey(keys, 'mine'), sshKey(keys, 'other'), sshKey(keys, 'rsa', '', 'rsa')]
    const folder = folderOf(t)
    const server = await sshServer(t, folder, [mine.public, rsa.public])
    const user = /\/\/([^@]+)@/.exec(server.url(''))?.[1] ?? me
    const far = join(folder, 'far.txt')
    writeFileSync(far, 'on the server\n')
    const box = { host: 'localhost', port: server.port, user, auth: 'key', privateKey: mine.private } as const

    const frames = await add(daemon, { id: 'box', kind: 'ssh', config: box })
    t.match(
      frames,
      exactly(
        { kind: 'log', message: `signing in to localhost:${server.port} as ${user}` },
        { kind: 'log', message: /^its host key is ssh-ed25519 SHA256:[\w+/]{43}; from now on no other is accepted/ },
        { kind: 'log', message: 'turns reach it as: ssh box' },
        { kind: 'status', status: { state: 'active' } },
        { kind: 'result', ok: true, id: 'box', status: { state: 'active' } },
      ),
    )
    t.match(
      (await client.call('GET /capabilities')).capabilities,
      exactly({ kind: 'ssh', secrets: exactly('privateKey') }),
    )

    await t.test('a turn runs commands there and copies files, and holds no key', async t => {
      const secret = mine.private.split('\n')[2]!
      const [ran, near, copied, listed, removed, again, searched, direct] = await shellTurn(client, 'c', [
        `ssh box "cat ${far}"`,
        `cat ${far}`,
        `scp -O -q box:${far} copied.txt && cat copied.txt`,
        'SSH_AUTH_SOCK=/run/sandbox-ssh/box/agent ssh-add -l',
        'SSH_AUTH_SOCK=/run/sandbox-ssh/box/agent ssh-add -D',
        'echo fed | ssh box cat',
        'env; cat /etc/ssh/ssh_config /run/sandbox-ssh/box/known-hosts',
        'touch /run/sandbox-ssh/box/x; rm /run/sandbox-ssh/box/agent',
      ])
      t.equal(ran, 'on the server')
      t.match(near, /no such file/i, 'it is not seen from here')
      t.equal(copied, 'on the server')
      t.match(listed, /ED25519/)
      t.match(removed, /fail|refused|could not/i)
      t.equal(again, 'fed')
      t.match(searched, /\nHost box\n/)
      t.notOk(searched!.includes(secret))
      t.match(direct, /read-only file system/i)
      t.notOk(written(daemon).includes(secret))
      t.notOk(daemon.logged.join('\n').includes(secret))
    })

    await t.test('a turn without the connection has no such server', async t => {
      t.same(await inner(daemon, 'env.variables', { conversationId: 'c', capabilities: [] }), { variables: {} })
    })

    await t.test('a wrong new key is refused, and the old one stays', async t => {
      const refused = await refusalOf(() =>
        client.call('POST /capabilities/{id}/secret', { id: 'box', value: other.private }),
      )
      t.match(refused, { status: 424, message: /localhost refused the key for the user .+authorized_keys/ })
      t.match(await client.call('GET /capabilities/{id}/status', { id: 'box' }), { state: 'active' })
      t.same(await shellTurn(client, 'd', ['ssh box echo old']), ['old'])
    })

    await t.test('a key of another kind takes its place', async t => {
      await client.call('POST /capabilities/{id}/secret', { id: 'box', value: rsa.private })
      t.same(await shellTurn(client, 'd', ['ssh box echo rsa']), ['rsa'])
    })

    await t.test('it is renamed with its host key', async t => {
      await client.call('POST /capabilities/{id}/rename', { id: 'box', to: 'far-box' })
      const [renamed, before] = await shellTurn(client, 'e', ['ssh far-box echo renamed', 'ssh box true'])
      t.equal(renamed, 'renamed')
      t.match(before, /could not resolve|name or service|resolution/i)
    })

    await t.test('another host key is refused, here and in turns', async t => {
      await server.replace()
      t.match(await client.call('GET /capabilities/{id}/status', { id: 'far-box' }), {
        state: 'error',
        code: 'unauthorized',
        detail: /host key of localhost:\d+ is not the one it had before.+connect it again/,
      })
      t.match((await shellTurn(client, 'f', ['ssh far-box true']))[0], /host key verification failed/i)
    })

    await t.test('nothing of it is left once it is removed', async t => {
      t.ok(existsSync(join(daemon.data, 'capabilities/ssh/far-box/known-hosts')))
      await client.call('DELETE /capabilities/{id}', { id: 'far-box' })
      t.notOk(existsSync(join(daemon.data, 'capabilities/ssh/far-box')))
      t.equal(vault.values.size, 0)
      t.match((await shellTurn(client, 'g', ['ssh far-box true']))[0], /could not resolve|resolution/i)
      await add(daemon, { id: 'far-box', kind: 'ssh', config: { ...box, privateKey: rsa.private } })
      t.match(await client.call('GET /capabilities/{id}/status', { id: 'far-box' }), { state: 'active' })
    })
  },
)

t.test(
  'a server that does not let the sandbox in is not connected, and says why',
  { ...walled(), ...withSshd() },
  async t => {
    const { daemon, vault } = await capabilitiesDaemon(t)
    const keys = folderOf(t)
    const [mine, other, locked] = [sshKey(keys, 'mine'), sshKey(keys, 'other'), sshKey(keys, 'locked', 'correct horse')]
    const server = await sshServer(t, folderOf(t), [mine.public])
    const web = createServer((_, answer) => answer.end('<p>')).listen(0, '127.0.0.1')
    await once(web, 'listening')
    t.teardown(() => web.close())
    const webPort = (web.address() as AddressInfo).port
    const user = /\/\/([^@]+)@/.exec(server.url(''))?.[1] ?? me
    const good = { host: 'localhost', port: server.port, user, auth: 'key', privateKey: mine.private } as const
    const failing: [config: object, message: RegExp][] = [
      [{ privateKey: other.private }, /localhost refused the key for the user/],
      [
        { auth: 'password', privateKey: undefined, password: 'pw' },
        /takes no password from \S+, only publickey: set auth/,
      ],
      [{ port: 1 }, /nothing is listening at localhost:1: check the port/],
      [{ port: webPort }, /ended the connection or does not speak ssh: check the port/],
      [{ host: 'nowhere.invalid' }, /nowhere\.invalid:\d+ could not be found: .+; check the name/],
      [{ port: Number(new URL(daemon.url).port) }, /this sandbox itself.+name another server/],
    ]
    for (const [change, message] of failing) {
      const refused = await refusalOf(() => add(daemon, { id: 'box', kind: 'ssh', config: { ...good, ...change } }))
      t.match(refused, { message }, JSON.stringify(change).slice(0, 60))
    }
    const unfit: [config: object, message: RegExp][] = [
      [{ privateKey: locked.private }, /config\.privateKey: expected .+ without a passphrase/],
      [{ privateKey: mine.public }, /config\.privateKey: expected a private key/],
      [{ privateKey: mine.private.slice(0, 60) }, /config\.privateKey: expected a private key/],
      [{ privateKey: undefined }, /config\.privateKey: expected a value/],
      [{ password: 'both' }, /config\.password: expected none, for auth is key/],
      [{ auth: 'password', privateKey: undefined, password: 'a\nb' }, /config\.password: expected one line/],
      [{ user: '-oProxyCommand=id' }, /config\.user: expected the name of a user/],
      [{ host: 'example.org:22' }, /config\.host: expected the name or the address of a server, without a port/],
      [{ host: '-oProxyCommand=id' }, /config\.host/],
      [{ port: 0 }, /port/],
    ]
    for (const [change, message] of unfit) {
      const body = JSON.stringify({ id: 'box', kind: 'ssh', config: { ...good, ...change } })
      const response = await daemon.fetch('/capabilities', { method: 'POST', body })
      t.equal(response.status, 400, JSON.stringify(change).slice(0, 60))
      t.match(JSON.stringify(await response.json()), message)
    }
    t.same([...vault.values], [])
    t.same((await daemon.client.call('GET /capabilities')).capabilities, [])
    t.notOk(existsSync(join(daemon.data, 'capabilities/ssh/box')))
    t.same(globSync(join(daemon.data, 'capabilities/ssh-attempts/*')), [])
    const secret = mine.private.split('\n')[2]!
    t.notOk(`${written(daemon)}${daemon.logged.join('\n')}`.includes(secret))
  },
)

t.test('a password signs in, and turns have it in a variable', { ...walled(), ...withSshd() }, async t => {
  const daemon = await daemonWith(t, ['agent', 'agents', 'capabilities'], { fakes: vaultFake().fakes })
  const server = await passwordServer(t, folderOf(t), 'deploy', 'correct-horse')
  const config = { host: '127.0.0.1', port: server.port, user: 'deploy', auth: 'password' } as const
  const refused = await refusalOf(() =>
    add(daemon, { id: 'box', kind: 'ssh', config: { ...config, password: 'wrong' } }),
  )
  t.match(refused, { message: /refused the password of the user deploy/ })
  const frames = await add(daemon, { id: 'box', kind: 'ssh', config: { ...config, password: 'correct-horse' } })
  t.match(frames.at(-1), { kind: 'result', status: { state: 'active' } })
  t.same(server.ran, ['true'])
  t.same(await shellTurn(daemon.client, 'c', ['ssh box uname -a']), ['ran uname -a'])
  t.match((await inner(daemon, 'env.variables', { conversationId: 'c' })).variables, {
    SSH_PASSWORD_BOX: 'correct-horse',
  })
  t.notOk(written(daemon).includes('correct-horse'))
})

t.test('what ssh says is told with what to do', async t => {
  const server = { host: 'example.org', port: 22, user: 'deploy' }
  const told = (said: string) => sshFailure(said, server, 'key')
  t.match(told('ssh: connect to host example.org port 22: No route to host'), {
    code: 'unreachable',
    message: /there is no route to example.org: check/,
  })
  t.match(told('ssh: connect to host example.org port 22: Connection timed out'), {
    message: /example.org does not answer: check its address and port/,
  })
  t.match(told('Unable to negotiate with 1.2.3.4 port 22: no matching host key type found. Their offer: ssh-dss'), {
    message: /only outdated methods/,
  })
  t.match(told('ssh: something new'), { message: /example.org could not be reached: ssh: something new/ })
})
