import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { folderOf, spawnDaemon } from '../support/daemon.js'
import { exactly } from '../support/lists.js'
import { startAccountServer } from '../support/servers/account-server.js'
import { ACCOUNTS_POINTS, dies, whereIn } from './failpoints/failpoints.js'

const acme = { provider: 'acme' } as const

for (const point of ACCOUNTS_POINTS) {
  void t.test(`killed at ${point}, a sign-in connected one account, and finishing it again answers it`, async t => {
    const server = await startAccountServer(t)
    const definitions = join(folderOf(t), 'definitions')
    mkdirSync(definitions)
    writeFileSync(join(definitions, 'acme.json'), JSON.stringify(server.definition('acme')))
    const where = whereIn(t, {}, { models: { providers: definitions } })
    const key = [...server.keys][0]!
    let handshake = ''
    await dies(t, where, point, async ({ once }) => {
      ;({ handshake } = await once.call('POST /accounts/{provider}/login/start', { ...acme, flow: 'key' }))
      await once.call('POST /accounts/{provider}/login/finish', { ...acme, handshake, key })
    })
    const { client } = await spawnDaemon(t, where)
    const { accounts, signIns } = await client.call('GET /accounts/{provider}', acme)
    t.match(accounts, exactly({ label: 'ACME 1', needsReauth: false }))
    t.match(signIns, exactly({ handshake, state: 'done', account: accounts[0]!.id }))
    const again = await client.call('POST /accounts/{provider}/login/finish', { ...acme, handshake, key })
    t.equal(again.id, accounts[0]!.id)
    await client.call('POST /accounts/{provider}/disconnect', { ...acme, id: again.id })
    t.same((await client.call('GET /accounts/{provider}', acme)).accounts, [])
  })
}
