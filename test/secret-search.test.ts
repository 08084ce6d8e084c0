import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { openVault, readVault } from '../plugins/secrets/vault/vault.js'
import { until } from './support/browser/browser.js'
import { daemonWith, folderOf, makeWorkspace, spawnDaemon, type RunningDaemon, type Support } from './support/daemon.js'
import { exactly } from './support/lists.js'
import { filesIn, meantInClear, searchSecrets, shownBelow } from './support/secret-search.js'

const VALUE = 'a value/of this+test=9f3b'

const store = async ({ client }: Pick<Support | RunningDaemon, 'client'>): Promise<void> => {
  await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
  await client.call('POST /secrets', { key: 'TOKEN', value: VALUE })
}

/** A repository with one text in a pack of two objects, of which one is stored as its difference to the other. */
const packed = (folder: string, text: string): void => {
  const git = (args: string[], input?: string) =>
    execFileSync('git', ['-C', folder, ...args], { encoding: 'utf8', input })
  mkdirSync(folder)
  git(['init', '--quiet', '--bare'])
  const long = 'a line of a long text\n'.repeat(100)
  const ids = [long, long + text].map(each => git(['hash-object', '-w', '--stdin'], each))
  git(['pack-objects', '--quiet', 'objects/pack/x'], ids.join(''))
  git(['prune-packed'])
  const [pack] = readdirSync(join(folder, 'objects/pack')).filter(name => name.endsWith('.pack'))
  for (const kind of ['idx', 'pack'])
    renameSync(join(folder, 'objects/pack', pack!.replace(/pack$/, kind)), join(folder, `objects/pack/x.${kind}`))
}

t.test(
  'a stored value in a file, an output, an error or an argument fails the test, which names the place',
  async t => {
    const folder = folderOf(t)
    const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
    makeWorkspace(workspace)
    const daemon = await daemonWith(t, ['secrets'], {
      workspace,
      data,
      fakes: { 'settings.get': () => Promise.reject(new Error(`no setting ${VALUE}`)) },
    })
    await store(daemon)
    t.same(shownBelow(folder), [])
    writeFileSync(join(data, 'encoded'), `x${Buffer.from(`y${VALUE}`).toString('base64')}`)
    writeFileSync(join(data, 'old.gz'), gzipSync(`{"said":"${encodeURIComponent(VALUE)}"}`))
    writeFileSync(join(workspace, 'config'), VALUE)
    writeFileSync(join(workspace, 'meant'), VALUE)
    packed(join(folder, 'data/packed'), `old ${VALUE}`)
    meantInClear(daemon, 'workspace: meant', 'the test wrote it')
    daemon.logged.push(VALUE)
    const caller = { kind: 'plugin', actor: 'sandbox:test', role: 'owner' } as const
    const { signal } = new AbortController()
    await t.rejects(daemon.kernel.calls.answer('settings.get', {}, { caller, signal, trusted: true }))
    const child = spawn('sh', ['-c', 'read line', VALUE])
    t.teardown(() => child.kill())
    await until(async () => shownBelow(folder).includes('arguments'))
    t.throws(() => searchSecrets(folder), {
      message:
        'stored values are in the clear in output, arguments, errors, data folder: encoded, data folder: old.gz, '
        + 'data folder: packed/objects/pack/x.pack, workspace: config',
    })
  },
)

t.test('values of a daemon in a process of its own are those of its vault', async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  const daemon = await spawnDaemon(t, { workspace, data })
  await store(daemon)
  const vault = readVault(readFileSync(join(data, 'secrets/secrets.vault')))
  const key = readFileSync(join(data, `secrets/keys/${vault.head.key}.key`))
  t.match(openVault(vault, key).secrets, exactly({ value: VALUE }))
  t.same(shownBelow(folder), [])
  const [log] = filesIn(join(data, 'logs'))
  writeFileSync(log!, VALUE, { flag: 'a' })
  t.throws(() => searchSecrets(folder), { message: /in the clear in data folder: logs\// })
})
