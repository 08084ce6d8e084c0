import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { remoteFailure } from '../../../sdk/node/transport/remote-words.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { walled } from '../../attack/support.js'
import { folderOf, inGit } from '../../support/daemon.js'
import { bareCopy } from '../../support/servers/git-server.js'
import { sshKey, sshServer, withSshd } from '../../support/ssh-server.js'
import { commitAll, gitWorld, put, repoAt } from './support.js'

t.test(
  'clone, fetch and push go over ssh with the key that is stored for the host',
  { ...walled(), ...withSshd() },
  async t => {
    const { client, workspace, daemon } = await gitWorld(t, { f: '1\n' }, ['secrets', 'activity'])
    const keys = folderOf(t)
    const [mine, other, locked] = [sshKey(keys, 'mine'), sshKey(keys, 'other'), sshKey(keys, 'locked', 'correct horse')]
    const folder = folderOf(t)
    const server = await sshServer(t, folder, [mine.public])
    const at = join(workspace, 'r')
    repoAt(at, { f: '1\n' })
    const bare = join(folder, 'r.git')
    bareCopy(at, bare)
    const url = server.url(bare)
    await client.call('POST /git/{repo}/remotes', { repo: 'r', name: 'origin', url })
    const fetched = () => client.call('POST /git/{repo}/fetch', { repo: 'r' })
    const store = (key: string, value: string) => client.call('POST /secrets', { key, value, hosts: ['localhost'] })
    const known = join(daemon.data, 'git/known-hosts')

    await t.test('without a key the call is refused without a prompt', async t => {
      t.match(await fetched(), { ok: false, code: 'auth', reason: /permission denied/i })
      await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
      await store('TOKEN_GIT', 'ghp_correcthorse')
      t.match(await fetched(), { ok: false, code: 'auth' }, 'a value that is no key is not used')
    })

    await t.test('a wrong key and one with a passphrase are refused with a sentence', async t => {
      await store('SSH_GIT', other.private)
      t.match(await fetched(), { ok: false, code: 'auth', reason: /permission denied/i })
      await client.call('POST /secrets', { key: 'SSH_GIT', value: locked.private, hosts: ['localhost'] })
      t.match(await fetched(), { ok: false, code: 'auth', reason: /passphrase/ })
    })

    await t.test('the stored key fetches, pushes and clones', async t => {
      await client.call('POST /secrets', { key: 'SSH_GIT', value: mine.private, hosts: ['localhost'] })
      t.match(await fetched(), { ok: true })
      put(at, { f: '2\n' })
      const sha = commitAll(at, 'two')
      t.match(await client.call('POST /git/{repo}/push', { repo: 'r' }), { ok: true })
      t.equal(inGit(bare, 'rev-parse', 'main').trim(), sha)
      await client.call('POST /workspace/repos', { name: 'cloned', cloneUrl: url })
      t.equal(readFileSync(join(workspace, 'cloned/f'), 'utf8'), '2\n')
      t.match((await client.call('GET /secrets/uses', {})).uses[0], { name: 'SSH_GIT', lane: 'code' })
    })

    await t.test('the key is in no file, log or record', async t => {
      const line = mine.private.split('\n')[2]!
      const held = [...daemon.logged, JSON.stringify(await client.call('GET /activity', { limit: 200 }))].join('\n')
      t.notOk(held.includes(line))
      t.same(readdirSync(join(daemon.data, 'git/transfers')), [])
      t.notOk(readFileSync(join(at, '.git/config'), 'utf8').includes(line))
      t.notOk(server.words().includes(line))
    })

    await t.test('the host key is stored at the first connection, and a different one is refused', async t => {
      const kept = readFileSync(known, 'utf8')
      t.match(kept, new RegExp(`^\\[localhost\\]:${server.port} ssh-ed25519 `, 'm'))
      await server.replace()
      const heads = inGit(bare, 'rev-parse', 'main')
      for (const ask of [fetched, () => client.call('POST /git/{repo}/push', { repo: 'r' })])
        t.match(await ask(), { ok: false, code: 'auth', reason: /host key of localhost is not the one it had before/ })
      const refused = await refusalOf(() => client.call('POST /workspace/repos', { name: 'again', cloneUrl: url }))
      t.match(refused, { status: 424, message: /host key/ })
      t.notOk(existsSync(join(workspace, 'again')))
      t.equal(readFileSync(known, 'utf8'), kept, 'nothing is learned from it')
      t.equal(inGit(bare, 'rev-parse', 'main'), heads)
    })

    await t.test('addresses of the daemon and of machine settings are not asked', async t => {
      for (const [away, reason] of [
        ['ssh://git@169.254.169.254/r.git', /own secrets/],
        [`ssh://git@localhost:${new URL(daemon.url).port}/r.git`, /this sandbox itself/],
      ] as const) {
        await client.call('POST /git/{repo}/remotes', { repo: 'r', name: 'origin', url: away })
        t.match(await fetched(), { ok: false, code: 'unreachable', reason }, away)
      }
    })
  },
)

t.test('the refusal contains the reason that ssh gives', async t => {
  const closing =
    'fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\n'
    + 'and the repository exists.\n'
  const told = (words: string) => remoteFailure(`${words}\n${closing}`, 'example.org')
  t.match(told('git@example.org: Permission denied (publickey).'), { code: 'auth', reason: /Permission denied/ })
  t.match(told('ssh: connect to host example.org port 22: Connection refused'), {
    code: 'unreachable',
    reason: /Connection refused/,
  })
  t.match(told('@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.'), {
    code: 'auth',
    reason: /the host key of example.org is not the one it had before/,
  })
})
