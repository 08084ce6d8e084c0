// What starting a program costs a process that holds much: `node dist/test/bench/spawn.js`. The daemon starts its own
// the same way.
import { spawnSync } from 'node:child_process'
import { listEnv, run } from '../../sdk/node/programs/run.js'
import { runner } from '../../sdk/node/programs/runner.js'
import { inTurns, median, ms, print, quick, timed, verdict } from './measure.js'

const ROUNDS = quick ? 2 : 60
const MIB = 1024 * 1024

/** Memory that was written to, as a heap is, and not only asked for. */
const held: Buffer[] = []
const hold = (size: number): void => {
  while (held.length * 64 * MIB < size) held.push(Buffer.alloc(64 * MIB, 1))
}

for (const size of quick ? [64] : [0, 512, 1536]) {
  hold(size * MIB)
  const options = { cwd: '/', env: listEnv() }
  // While it stands still no turn of the loop comes.
  const stands: number[] = []
  const longestTurn = async (over: Promise<unknown>): Promise<number> => {
    let [goes, longest] = [true, 0]
    void over.then(() => (goes = false))
    for (let before = performance.now(); goes;) {
      await new Promise(resolve => setImmediate(resolve))
      const now = performance.now()
      longest = Math.max(longest, now - before)
      before = now
    }
    return longest
  }
  // From much memory a small process starts programs, once it is there.
  while (process.memoryUsage.rss() > 160 * MIB && !runner()) await new Promise(resolve => setTimeout(resolve, 50))
  const found = await inTurns(
    {
      bare: () => timed(() => spawnSync('true')),
      run: () =>
        timed(async () => {
          stands.push(await longestTurn(run('true', [], options)))
        }),
    },
    ROUNDS,
  )
  const by = `spawn: \`true\` from ${Math.round(process.memoryUsage().rss / MIB / 50) * 50} MiB`
  print(`${by}, spawnSync (baseline)`, ms(median(found.bare)))
  print(`${by}, until it has ended`, ms(median(found.run)), `best ${ms(Math.min(...found.run))}`)
  verdict(`${by}, the loop stands still`, median(stands), { most: 4, as: ms })
}
