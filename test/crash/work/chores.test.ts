import t from 'tap'
import { spawnDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { CHORES_POINTS, dies, whereIn } from '../failpoints/failpoints.js'

const CONCLUSION = { repo: 'root', chore: 'bundle', runId: '', outcome: 'clean', digest: 'a' } as const
const TARGET = { repo: 'root', id: 'bundle' } as const

for (const point of CHORES_POINTS)
  void t.test(`what was asked for is measured, and what was concluded stays, if killed at ${point}`, async t => {
    const where = whereIn(t, { 'dist/app.js': 'console.log(1)\n' })
    const now = Date.now()
    await dies(t, where, point, async ({ once: client }) => {
      await client.call('POST /chores/ledger', { ...CONCLUSION, ranAt: now - 1 })
      await client.call('POST /chores/probe', TARGET)
      // The newer conclusion is stored only after the other points.
      if (point === 'chores.concluded:2') await client.call('POST /chores/ledger', { ...CONCLUSION, ranAt: now })
    })
    const { client } = await spawnDaemon(t, where)
    const read = () => client.call('GET /chores', {})
    let found = await read()
    while (found.repos[0]!.probes.length === 0) {
      await new Promise(resolve => setTimeout(resolve, 20))
      found = await read()
    }
    t.match(found.repos[0]!.probes, exactly({ ...{ id: 'bundle', state: 'ok' }, trend: exactly({}) }))
    t.match(found.ledger, exactly({ ...CONCLUSION, ranAt: point === 'chores.concluded:2' ? now : now - 1 }))
  })
