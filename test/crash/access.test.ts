import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { MemberList, OpenedSession } from '../../sdk/kernel.js'
import { ask, bearer, signInAs } from '../plugins/system/access/sign-in-support.js'
import { folderOf, makeWorkspace, spawnDaemon, type RunningDaemon } from '../support/daemon.js'
import { startIssuer, type Issuer } from '../support/servers/issuer.js'
import { ACCESS_POINTS } from './failpoints/failpoints.js'
import { spread } from '../support/lists.js'

const ADA = 'ada@example.org'
const BOB = 'bob@example.org'

t.jobs = 4
t.setTimeout(240_000)

interface Place {
  readonly issuer: Issuer
  start(point?: string): Promise<RunningDaemon>
}

/** The folders and the identity provider that successive daemons share. */
const place = async (t: Test): Promise<Place> => {
  const folder = folderOf(t)
  const issuer = await startIssuer(t)
  const [workspace, data, config] = [join(folder, 'workspace'), join(folder, 'data'), join(folder, 'config.json')]
  makeWorkspace(workspace)
  writeFileSync(config, JSON.stringify({ identity: { providers: [issuer.provider] } }))
  return {
    issuer,
    start: point =>
      spawnDaemon(t, {
        workspace,
        data,
        args: ['--config', config],
        ...(point !== undefined && { env: { SANDBOX_FAILPOINT: point } }),
      }),
  }
}

const listOf = async ({ client }: RunningDaemon): Promise<MemberList> => client.call('GET /members')

/** Runs a call that the daemon may not survive. */
const cut = async <T>(daemon: RunningDaemon, work: () => Promise<T>): Promise<T | undefined> => {
  const answer = await work().catch(() => undefined)
  await daemon.kill9()
  return answer
}

/** A kill after each of the daemon's writes, so each interrupts another step. */
const WRITES = Array.from({ length: 6 }, (_, at) => `file.temporary:${at + 1}`)

for (const point of ['access.opened', ...spread(WRITES, 2)]) {
  t.test(`a claim by an identity, killed at ${point}, makes one owner or none`, { buffered: true }, async t => {
    const { issuer, start } = await place(t)
    const first = await start(point).catch(() => undefined)
    const answers =
      first
      && (await cut(first, () =>
        Promise.all([ADA, BOB].map(email => signInAs(first, issuer, email).catch(() => undefined))),
      ))
    const next = await start()
    const before = await listOf(next)
    const owners = before.members.filter(({ role }) => role === 'owner')
    t.ok(before.members.length <= 1 && owners.length === before.members.length, 'every member is complete')
    const told = answers?.find(answer => answer?.status === 200)
    if (told) {
      t.equal(owners[0]?.email, told.body.email, 'the person who got the answer is the owner')
      t.equal((await ask(next.url, 'GET /info', undefined, bearer(told.body.token))).status, 200)
    }
    const email = owners[0]?.email ?? ADA
    t.match(await signInAs(next, issuer, email), { status: 200, body: { role: 'owner' } })
    t.equal((await signInAs(next, issuer, email === ADA ? BOB : ADA)).status, 403)
    await next.terminate()
  })

  t.test(
    `an invitation that many redeem, killed at ${point}, lets in one or stays open`,
    { buffered: true },
    async t => {
      const { issuer, start } = await place(t)
      const first = await start()
      await signInAs(first, issuer, ADA)
      const { invitation } = await first.client.call('POST /members', { role: 'collaborator' })
      await first.kill9()
      const second = await start(point).catch(() => undefined)
      const invite = invitation!.code
      const people = ['p0', 'p1', 'p2'].map(name => `${name}@example.org`)
      const answers =
        second
        && (await cut(second, () =>
          Promise.all(people.map(email => signInAs(second, issuer, email, { invite }).catch(() => undefined))),
        ))
      const next = await start()
      const { members, invitations } = await listOf(next)
      const joined = members.filter(({ role }) => role === 'collaborator')
      t.equal(joined.length + invitations.length, 1, 'either somebody joined or the invitation is still open')
      const told = answers?.find(answer => answer?.status === 200)
      if (told) t.equal((await ask(next.url, 'GET /info', undefined, bearer(told.body.token))).status, 200)
      const again = await signInAs(next, issuer, 'late@example.org', { invite })
      t.equal(again.status, invitations.length ? 200 : 401)
      if (joined[0])
        t.match(await signInAs(next, issuer, joined[0].email), { status: 200, body: { role: 'collaborator' } })
      await next.terminate()
    },
  )
}

const member = async ({ issuer }: Place, daemon: RunningDaemon): Promise<OpenedSession> => {
  await signInAs(daemon, issuer, ADA)
  await daemon.client.call('POST /members', { email: BOB, role: 'maintainer' })
  return (await signInAs(daemon, issuer, BOB)).body
}

t.test('a role that was lowered stays lowered after a kill at access.granted', async t => {
  const where = await place(t)
  const first = await where.start()
  const bob = await member(where, first)
  await first.kill9()
  const second = await where.start('access.granted')
  t.equal(await cut(second, () => second.once.call('POST /members', { email: BOB, role: 'viewer' })), undefined)
  const next = await where.start()
  t.match((await ask(next.url, 'GET /info', undefined, bearer(bob.token))).body.me, { role: 'viewer' })
  await next.terminate()
})

t.test('a removed person and their sessions stay removed after a kill at access.removed', async t => {
  const where = await place(t)
  const first = await where.start()
  const bob = await member(where, first)
  await first.kill9()
  const second = await where.start('access.removed')
  t.equal(await cut(second, () => second.once.call('DELETE /members', { email: BOB })), undefined)
  const next = await where.start()
  t.equal((await ask(next.url, 'GET /info', undefined, bearer(bob.token))).status, 401)
  t.same(
    (await listOf(next)).members.map(({ email }) => email),
    [ADA],
  )
  t.equal((await signInAs(next, where.issuer, BOB)).status, 403)
  await next.terminate()
})

t.test('each failpoint of access has a case here', async t => {
  t.same(ACCESS_POINTS, ['access.granted', 'access.opened', 'access.removed'])
})
