import { existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { RepoGit } from '../../../plugins/git/repositories/repo-git.js'
import { repoPlaceAt, type RepoPlace } from '../../../plugins/git/repositories/repo-place.js'
import { remoteAddress } from '../../../sdk/node/transport/remote-address.js'
import { Transfers } from '../../../plugins/git/transport/transfers.js'
import { folderOf, inGit } from '../../support/daemon.js'
import { bareCopy, gitServer, trustedAuthority } from '../../support/servers/git-server.js'
import { commitAll, gitWorld, put, repoAt } from './support.js'

const WORD = 'ghp_correcthorse%battery/staple'

/** A server that takes connections and says nothing, or what it is told to. */
const silentServer = async (t: Pick<Test, 'teardown'>, words?: string) => {
  const server = createServer(socket => {
    // A git that is given up closes its connection at once.
    socket.on('error', () => {})
    if (words) socket.end(words)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

/** A repository, and transfers that wait as long as told. */
const alone = (t: Test, stallMs: number, limitMs = 60_000) => {
  const workspace = folderOf(t)
  const data = folderOf(t)
  repoAt(join(workspace, 'r'), { f: '1\n' })
  const git = new RepoGit(repoPlaceAt({ workspace, data }, 'r') as RepoPlace, { workspace, data })
  const host = {
    place: { folder: join(data, 'git') },
    signal: new AbortController().signal,
    serves: async () => false,
    call: async () => ({ listeners: [] }),
  }
  mkdirSync(join(data, 'git/transfers'), { recursive: true })
  const transfers = new Transfers(host as never, { workspace, data }, { stallMs, limitMs })
  const ask = (url: string) =>
    transfers.with(git, scratch =>
      transfers.inScratch(git, scratch, remoteAddress(url, { workspace, from: workspace, field: 'url' }), asked => [
        'fetch',
        '--progress',
        '--end-of-options',
        asked,
        '+refs/heads/*:refs/remotes/o/*',
      ]),
    )
  return { ask, left: () => readdirSync(join(data, 'git/transfers')) }
}

t.test('a remote that hangs, lies or sends on elsewhere ends with a reason, and nothing is left of it', async t => {
  const { ask, left } = alone(t, 400)
  const hung = await silentServer(t)
  for (const url of [`http://127.0.0.1:${hung}/x.git`, `git://localhost:${hung}/x.git`])
    t.match(await ask(url), { failure: { code: 'unreachable', reason: /did not answer for 0\.4 s/ } }, url)
  const lies = await silentServer(
    t,
    'HTTP/1.1 200 OK\r\ncontent-type: application/x-git-upload-pack-advertisement\r\n\r\nzz',
  )
  t.match(await ask(`http://127.0.0.1:${lies}/x.git`), { failure: { reason: /\S/ } })
  const patient = alone(t, 30_000)
  const target = await gitServer(t, folderOf(t))
  const away = await gitServer(t, folderOf(t), {
    instead: (_, answer) => {
      answer.writeHead(302, { location: `${target.url}/x.git/info/refs?service=git-upload-pack` }).end()
      return true
    },
  })
  t.match(await patient.ask(`${away.url}/x.git`), {
    failure: { code: 'unreachable', reason: /sends on to another address/ },
  })
  t.same(target.requests, [])
  t.match(await patient.ask('http://none.invalid/x.git'), { failure: { code: 'unreachable', reason: /none\.invalid/ } })
  t.match(await patient.ask('http://169.254.169.254/x.git'), {
    failure: { code: 'unreachable', reason: /told its own secrets/ },
  })
  t.same([...left(), ...patient.left()], [])
})

t.test('a remote that keeps talking ends at the limit', async t => {
  const { ask } = alone(t, 60_000, 400)
  const hung = await silentServer(t)
  t.match(await ask(`http://127.0.0.1:${hung}/x.git`), { failure: { reason: 'it did not end within 0.4 s' } })
})

t.test('a stored value goes to the host it is bound to, over TLS alone, and shows nowhere', async t => {
  const authority = await trustedAuthority(t)
  const { client, workspace, daemon } = await gitWorld(t, { f: '1\n' }, ['secrets', 'activity'])
  const at = join(workspace, 'r')
  repoAt(at, { f: '1\n' })
  const needs = `x-access-token:${WORD}`
  const server = await gitServer(t, folderOf(t), { secure: authority, needs })
  const plain = await gitServer(t, folderOf(t), { needs })
  bareCopy(at, join(server.folder, 'r.git'))
  const origin = (url: string) => client.call('POST /git/{repo}/remotes', { repo: 'r', name: 'origin', url })
  const fetched = () => client.call('POST /git/{repo}/fetch', { repo: 'r' })

  await origin(`${server.url}/r.git`)
  t.match(await fetched(), { ok: false, code: 'auth' }, 'it asks, and nobody is there to answer')
  await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
  await client.call('POST /secrets', { key: 'OTHER', value: 'another', hosts: ['example.org'] })
  await client.call('POST /secrets', { key: 'GIT_OF_PERSONA', value: 'x', hosts: ['localhost'], personas: ['p'] })
  t.match(await fetched(), { ok: false, code: 'auth' })
  await client.call('POST /secrets', { key: 'FORGE_GIT', value: WORD, hosts: ['localhost'] })
  t.match(await fetched(), { ok: true })
  put(at, { f: '2\n' })
  const sha = commitAll(at, 'two')
  t.match(await client.call('POST /git/{repo}/push', { repo: 'r' }), { ok: true })
  t.equal(inGit(join(server.folder, 'r.git'), 'rev-parse', 'main').trim(), sha)

  const { uses } = await client.call('GET /secrets/uses', {})
  t.match(uses[0], { name: 'FORGE_GIT', lane: 'code', detail: 'git localhost' })
  const held = [...daemon.logged, JSON.stringify(await client.call('GET /activity', { limit: 200 }))].join('\n')
  t.notMatch(held, /correcthorse/)
  t.notMatch(readFileSync(join(at, '.git/config'), 'utf8'), /correcthorse/)
  t.notOk(existsSync(join(daemon.data, 'git/transfers/credential')))

  await origin(`${plain.url}/r.git`)
  t.match(await fetched(), { ok: false, code: 'auth' })
  t.ok(plain.requests.every(({ authorization }) => !authorization?.includes(Buffer.from(needs).toString('base64'))))
  delete process.env.SSL_CERT_FILE
  await origin(`${server.url}/r.git`)
  t.match(await fetched(), { ok: false, code: 'unreachable', reason: /certificate/i }, 'nobody vouches for the server')
  await origin(`${daemon.url}/r.git`)
  t.match(await fetched(), { ok: false, code: 'unreachable', reason: /this sandbox itself/ })
})
