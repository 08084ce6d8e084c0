import t from 'tap'
import { Lane } from './random/lane.js'

/** Both can be given from outside, to look for more: `npm run crash` kills 200 times. */
const seed = Number(process.env['SANDBOX_CRASH_SEED'] ?? 1)
const kills = Number(process.env['SANDBOX_CRASH_KILLS'] ?? 50)
const LANES = ['a', 'b']

t.setTimeout(600_000)
t.jobs = LANES.length
t.comment(`seed ${seed}, ${kills} kills; SANDBOX_CRASH_SEED and SANDBOX_CRASH_KILLS give others`)

for (const [index, name] of LANES.entries()) {
  void t.test(`killed at random moments of a mixed load, everything acknowledged is whole (${name})`, { buffered: true }, async t => {
    const { faults, counts } = await new Lane(t, { name, seed: seed * LANES.length + index, kills: Math.ceil(kills / LANES.length) }).run()
    t.comment(JSON.stringify(counts))
    t.same(faults, [])
  })
}
