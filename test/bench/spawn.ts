// Measures starting a program from a process with much memory: `node dist/test/bench/spawn.js`. The daemon starts its
// programs the same way.
import { spawnSync } from 'node:child_process'
import { listEnv, run } from '../../sdk/node/programs/run.js'
import { runner } from '../../sdk/node/programs/runner.js'
import { inTurns, median, ms, print, quick, timed, verdict } from './measure.js'

const ROUNDS = quick ? 2 : 60
const MIB = 1024 * 1024

/** Memory that was written to, like a heap, not only allocated. */
const held: Buffer[] = []
const hold = (size: number): void => {
  while (held.length * 64 * MIB < size) held.push(Buffer.alloc(64 * MIB, 1))
}

for (const size of quick ? [64] : [0, 512, 1536]) {
  hold(size * MIB)
  const options = { cwd: '/', env: listEnv() }
  // Records how long the event loop is blocked.
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
  // With much memory a small process starts the programs, once it has started itself.
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
