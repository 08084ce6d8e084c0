import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, readlinkSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { environmentOf, digestOf, planFor } from '../../../../sdk/cli/deploy/plan.js'
import { SourceFolder } from '../../../../sdk/cli/deploy/source.js'
import { tarOf, textEntry } from '../../../../sdk/cli/deploy/tar.js'
import { deployHostOf, nodeOf, deploySecretKeys, usedHosts } from '../../../../sdk/node/deploy/desired.js'
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

t.test('the environment has what is stored: lines as they are, a password by its name, quoted for docker', t => {
  const values = {
    SERVICE_PASSWORD_DB: "pa$$'word",
    APP_ENV_SHOP: 'A=1\r\nno line\n# no\nB=x=y',
    HOST_SSH_KEY_HOME: 'key',
  }
  t.equal(environmentOf(nodeOf(DB), values, 'podman'), "POSTGRES_PASSWORD=pa$$'word\n")
  t.equal(environmentOf(nodeOf(DB), values, 'docker'), "POSTGRES_PASSWORD='pa$$\\'word'\n")
  t.equal(environmentOf(nodeOf(SHOP), values, 'podman'), 'A=1\nB=x=y\n')
  t.equal(environmentOf(nodeOf(SHOP), {}, 'podman'), '')
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
