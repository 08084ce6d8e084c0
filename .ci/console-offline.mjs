// Runs the journeys through the console again and again with no network but the machine's own address: ten times, or as
// often as the command line says. Ends with the first run that fails.
import { spawnSync } from 'node:child_process'

const JOURNEYS = ['journey', 'journeys', 'keyboard', 'live-views', 'sign-in'].map(name => `console/${name}`)

const times = Number(process.argv[2] ?? 10)
if (!(Number.isInteger(times) && times > 0)) throw new Error(`expected a number of runs, found ${process.argv[2]}`)
const apart = ['--net', ...(process.getuid?.() === 0 ? [] : ['--map-root-user'])]
for (let run = 1; run <= times; run++) {
  const { status, error } = spawnSync(
    'unshare',
    [...apart, 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', process.execPath, '.ci/test.mjs', ...JOURNEYS],
    { stdio: 'inherit' },
  )
  if (error) throw error
  console.log(`run ${run} of ${times} ${status === 0 ? 'passed' : 'failed'}`)
  if (status !== 0) process.exit(1)
}
