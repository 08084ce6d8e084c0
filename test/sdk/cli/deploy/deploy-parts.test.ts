import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, readlinkSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { environmentOf, digestOf, planFor, serviceFor } from '../../../../sdk/cli/deploy/plan.js'
import { alone, LOCK, LOOK, PUT } from '../../../../sdk/cli/deploy/scripts.js'
import { SourceFolder } from '../../../../sdk/cli/deploy/source.js'
import { tarOf, textEntry } from '../../../../sdk/cli/deploy/tar.js'
import {
  deployHostOf,
  nodeOf,
  deploySecretKeys,
  runningStateOf,
  usedHosts,
} from '../../../../sdk/node/deploy/desired.js'
import { allOf } from '../../../support/all-of.js'
import { folderOf } from '../../../support/daemon.js'

const HOME = {
  kind: 'backend',
  provider: 'host',
  name: 'home',
  values: { address: 'home.example.org', user: 'deploy', hostKey: 'ssh-ed25519 AAAA' },
} as const
const DB = { kind: 'service', service: 'postgres', name: 'db', values: {}, on: 'home', expose: '' } as const
const SHOP = { kind: 'app', name: 'shop', values: { source: 'shop', port: 80 }, on: 'home', expose: 'home' } as const

t.test('an archive is one that tar reads: long and foreign names, links, modes, empty files', async t => {
  const folder = folderOf(t)
  const source = join(folder, 'workspace/app')
  const long = `${'deep/'.repeat(30)}${'n'.repeat(120)}`
  mkdirSync(join(source, 'deep/'.repeat(30)), { recursive: true })
  mkdirSync(join(source, '.git'))
  writeFileSync(join(source, '.git/config'), 'not sent')
  writeFileSync(join(source, long), 'long')
  writeFileSync(join(source, 'grüße.txt'), 'ü'.repeat(300_000))
  writeFileSync(join(source, 'empty'), '')
  writeFileSync(join(source, 'run.sh'), '#!/bin/sh\n', { mode: 0o755 })
  symlinkSync('/etc/passwd', join(source, 'out'))
  await using opened = await SourceFolder.open(join(folder, 'workspace'), 'app')
  const bytes = Buffer.concat(await allOf(tarOf(opened.entries())))
  const into = join(folder, 'into')
  mkdirSync(into)
  execFileSync('tar', ['-xpf', '-', '-C', into], { input: bytes })
  t.equal(readFileSync(join(into, long), 'utf8'), 'long')
  t.equal(readFileSync(join(into, 'grüße.txt'), 'utf8').length, 300_000)
  t.equal(statSync(join(into, 'empty')).size, 0)
  t.equal(statSync(join(into, 'run.sh')).mode & 0o777, 0o755)
  t.equal(readlinkSync(join(into, 'out')), '/etc/passwd', 'a link stays a link')
  t.throws(() => statSync(join(into, '.git')), { code: 'ENOENT' })
  const before = await opened.digest()
  writeFileSync(join(source, 'run.sh'), '#!/bin/sh\nexit\n')
  t.not(await opened.digest(), before)
})

t.test('a folder outside of the workspace is no source, also behind a link', async t => {
  const folder = folderOf(t)
  mkdirSync(join(folder, 'workspace'))
  mkdirSync(join(folder, 'outside'))
  symlinkSync('../outside', join(folder, 'workspace/app'))
  await t.rejects(SourceFolder.open(join(folder, 'workspace'), 'app'))
  await t.rejects(SourceFolder.open(join(folder, 'workspace'), 'none'), { message: /no folder of the workspace/ })
})

t.test('a file that shrinks while it is sent ends the archive', async t => {
  const entry = { ...textEntry('a', 'abc'), size: 5 }
  await t.rejects(allOf(tarOf([entry])), { message: /changed while it was read/ })
})

t.test('services and apps are compose projects, reachable as far as they are exposed', t => {
  const db = nodeOf(DB)
  t.match(db, { type: 'postgres', host: 'home' })
  t.same(db.compose, {
    services: {
      main: {
        image: 'docker.io/library/postgres:16',
        restart: 'unless-stopped',
        ports: ['127.0.0.1:5432:5432'],
        volumes: ['data:/var/lib/postgresql/data'],
        environment: { POSTGRES_DB: 'app' },
        env_file: ['environment'],
      },
    },
    volumes: { data: {} },
  })
  t.same(db.secrets, [{ key: 'SERVICE_PASSWORD_DB', required: true, variable: 'POSTGRES_PASSWORD' }])
  const shop = nodeOf(SHOP, { path: 'shop', digest: 'd' })
  t.same(shop.compose.services.main.ports, ['80:80'])
  t.equal(nodeOf({ ...SHOP, values: { source: 'shop' } }).compose.services.main.ports, undefined)
  t.same(nodeOf({ ...SHOP, values: { source: 'shop', port: 80, publish: 8080 } }).compose.services.main.ports, [
    '8080:80',
  ])
  t.end()
})

t.test('the environment has what is stored: lines as they are, a password by its name, word for word', t => {
  const values = {
    SERVICE_PASSWORD_DB: "pa$$'word",
    APP_ENV_SHOP: 'A=1\r\nno line\n# no\nB=x=y',
    HOST_SSH_KEY_HOME: 'key',
  }
  t.equal(environmentOf(nodeOf(DB), values), "POSTGRES_PASSWORD=pa$$'word\n")
  t.equal(environmentOf(nodeOf(SHOP), values), 'A=1\nB=x=y\n')
  t.equal(environmentOf(nodeOf(SHOP), {}), '')
  const { main } = nodeOf(DB).compose.services
  t.same(serviceFor(main, "POSTGRES_PASSWORD=pa$$'w\\\n", 'podman'), main)
  const { env_file: _, ...others } = main
  t.same(
    serviceFor(main, "POSTGRES_PASSWORD=pa$$'w\\\n", 'docker'),
    { ...others, environment: { POSTGRES_DB: 'app', POSTGRES_PASSWORD: "pa$$$$'w\\" } },
    'of JSON it reads dollars alone',
  )
  t.not(digestOf(nodeOf(SHOP), 'A=1\n'), digestOf(nodeOf(SHOP), 'A=2\n'))
  t.end()
})

t.test('a plan creates, updates what differs or stands still, deletes first, and leaves the rest', t => {
  const node = (name: string) => nodeOf({ ...DB, name })
  const desired = ['new', 'same', 'other', 'still'].map(name => ({ node: node(name), digest: 'd' }))
  const seen = [
    { name: 'same', digest: 'd', running: 1 },
    { name: 'other', digest: 'e', running: 1 },
    { name: 'still', digest: 'd', running: 0 },
    { name: 'old', digest: 'd', running: 1 },
  ]
  t.same(
    planFor('home', desired, seen).map(({ name, action }) => `${action} ${name}`),
    ['delete old', 'create new', 'none same', 'update other', 'update still'],
  )
  t.end()
})

t.test('a machine is asked while something runs on it, and its key is needed', t => {
  const home = deployHostOf(HOME)
  const running = {
    version: 1,
    hosts: [{ ...home, name: 'gone', sshKey: 'HOST_SSH_KEY_GONE' }],
    nodes: [{ name: 'x', host: 'gone', digest: 'd' }],
  } as const
  t.same(usedHosts([home], [], undefined), [])
  t.same(
    usedHosts([home], [{ host: 'home' }], running).map(({ name }) => name),
    ['gone', 'home'],
  )
  t.same(deploySecretKeys([HOME], undefined), { required: [], others: [] })
  t.same(deploySecretKeys([HOME, DB, SHOP], running), {
    required: ['HOST_SSH_KEY_GONE', 'HOST_SSH_KEY_HOME', 'SERVICE_PASSWORD_DB'],
    others: ['APP_ENV_SHOP'],
  })
  t.end()
})

t.test('a record of what runs names machines as they could be declared, each with its own key', t => {
  const home = { ...deployHostOf(HOME), name: 'home' }
  const nodes = [{ name: 'x', host: 'home', digest: 'd' }]
  const record = { version: 1, hosts: [home], nodes } as const
  t.same(runningStateOf(JSON.stringify(record)), record)
  for (const wrong of [
    { ...record, hosts: [null] },
    { ...record, hosts: [{ ...home, sshKey: 'BANK_TOKEN' }] },
    { ...record, hosts: [{ ...home, address: '-oProxyCommand=x' }] },
    { ...record, hosts: [{ ...home, name: 'a b' }] },
    { ...record, hosts: {} },
    { ...record, nodes: [null] },
    { ...record, nodes: [{ name: '../x', host: 'home' }] },
    null,
  ])
    t.equal(runningStateOf(JSON.stringify(wrong)), undefined, JSON.stringify(wrong))
  t.equal(runningStateOf('{'), undefined)
  t.end()
})

t.test('an entry may be named as the locks of a machine are', async t => {
  const folder = folderOf(t)
  mkdirSync(join(folder, 'bin'))
  const program = (name: string, lines: string) =>
    writeFileSync(join(folder, 'bin', name), `#!/bin/sh\n${lines}\n`, { mode: 0o755 })
  program('podman', 'case $1 in ps) echo one;; esac')
  program('podman-compose', ':')
  const env = { HOME: folder, PATH: `${join(folder, 'bin')}:${process.env.PATH}` }
  const run = (script: string, args: readonly string[], input: Buffer | string = '') =>
    execFileSync('sh', ['-c', script, 'sh', ...args], { input, env }).toString()
  for (const name of ['lock', 'work']) {
    const { script, args } = alone(PUT, ['0123abcd', 'podman', name, 'd1', 'localhost/none:none'])
    run(script, args, Buffer.concat(await allOf(tarOf([textEntry('compose.json', '{}')]))))
  }
  t.equal(run(LOCK, ['0123abcd', 'podman']), 'locked\n')
  t.equal(run(LOOK, ['0123abcd', 'podman']), 'node lock d1 1\nnode work d1 1\n')
})
