import t from 'tap'
import { crashSeed, EVERY_CASE } from '../support/lists.js'
import { together, tooFew, type Counts } from './random/floors.js'
import { Lane } from './random/lane.js'

/** A seed repeats the requests, not the moments at which the machine serves them. */
const seed = crashSeed()
const kills = Number(process.env['SANDBOX_CRASH_KILLS'] ?? (EVERY_CASE ? 20 : 12))
const LANES = ['a', 'b']
/** A client fewer in a push: each costs processor time for as long as another's operation is waited for. */
const drivers = kills < 200 ? 2 : 3

t.setTimeout(900_000)
t.jobs = LANES.length

const again = `SANDBOX_CRASH_SEED=${seed} SANDBOX_CRASH_KILLS=${kills} repeats it`
const lanes = LANES.map(() => Promise.withResolvers<Counts | undefined>())

for (const [index, name] of LANES.entries()) {
  void t.test(
    `kills at random moments of a mixed load lose nothing acknowledged (lane ${name}, seed ${seed}; ${again})`,
    { buffered: true },
    async t => {
      try {
        const { faults, counts, kept } = await new Lane(t, {
          name,
          seed: seed * LANES.length + index,
          kills: Math.ceil(kills / LANES.length),
          drivers,
        }).run()
        t.comment(JSON.stringify(counts))
        t.same(faults, [], `nothing is lost, duplicated or left over${kept === undefined ? '' : `; see ${kept}`}`)
        if (!faults.length) lanes[index]!.resolve(counts)
      } finally {
        lanes[index]!.resolve(undefined)
      }
    },
  )
}

void t.test(`a run contains enough of each kind of operation (seed ${seed}; ${again})`, async t => {
  const counts = (await Promise.all(lanes.map(({ promise }) => promise))).filter(lane => lane !== undefined)
  if (counts.length < LANES.length) return t.comment('a lane ended early')
  t.same(tooFew(together(counts), kills), [])
})
