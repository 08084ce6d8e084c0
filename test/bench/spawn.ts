// What starting a program costs a process that holds much: `node dist/test/bench/spawn.js`. The daemon starts its own the same way.
import { spawnSync } from 'node:child_process'
import { listEnv, run } from '../../sdk/node/run.js'
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
  // The loop stands still until the call returns, and the program has ended some time later.
  const stands: number[] = []
  const found = await inTurns({
    bare: () => timed(() => spawnSync('true')),
    run: () => timed(async () => {
      const began = performance.now()
      const ended = run('true', [], options)
      await Promise.resolve()
      stands.push(performance.now() - began)
      await ended
    }),
  }, ROUNDS)
  const by = `spawn: \`true\` from ${Math.round(process.memoryUsage().rss / MIB / 50) * 50} MiB`
  print(`${by}, spawnSync (baseline)`, ms(median(found.bare)))
  print(`${by}, until it has ended`, ms(median(found.run)), `best ${ms(Math.min(...found.run))}`)
  verdict(`${by}, the loop stands still`, median(stands), { most: 4, as: ms })
}
