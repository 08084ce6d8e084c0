import { appendFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { BEGINNING, ChainCheck } from '../../sdk/node/record/chain.js'
import { stored, storedLines } from '../plugins/activity/support.js'
import { folderOf, makeWorkspace, spawnDaemon } from '../support/daemon.js'
import { runTurn } from '../support/turns.js'

const WRITERS = 8
const MOMENTS = [20, 90, 200, 330]

t.test('a kill during appends loses no acknowledged entry, and the chain stays intact', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  let daemon = await spawnDaemon(t, where)
  for (let writer = 0; writer < WRITERS; writer++)
    await runTurn(daemon.client, `c-${writer}`, 'say hello', { isolated: true })
  let told = 0
  for (const moment of MOMENTS) {
    const { once: client } = daemon
    const writing = Promise.allSettled(
      Array.from({ length: WRITERS }, async (_, writer) => {
        for (let on = true; ; on = !on) {
          await client.call('POST /agents/{id}/auto-land', { id: `c-${writer}`, autoLand: on })
          told += 1
        }
      }),
    )
    await delay(moment)
    await daemon.kill9()
    await writing
    const days = join(where.data, 'activity', 'days')
    if (moment !== MOMENTS[0])
      for (const name of readdirSync(days)) appendFileSync(join(days, name), '{"seq":99999,"at":1')
    daemon = await spawnDaemon(t, where)
    t.ok(
      stored({ data: where.data }).filter(({ type }) => type === 'agent.autoland').length >= told,
      `${moment} ms: all ${told} acknowledged entries exist`,
    )
    const { chain } = await daemon.client.call('GET /activity/status')
    t.match(chain, { intact: true, brokenAt: undefined }, `${moment} ms`)
    await daemon.client.call('POST /agents/{id}/auto-land', { id: 'c-0', autoLand: false })
    told += 1
    const check = new ChainCheck({ seq: 0, hash: BEGINNING })
    for (const line of storedLines({ data: where.data })) check.read(line)
    t.match(check, { brokenAt: undefined, head: { seq: check.entries } }, `${moment} ms: no torn entry is left`)
  }
  await daemon.terminate()
})
