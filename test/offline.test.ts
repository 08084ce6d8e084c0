import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const CHILD = fileURLToPath(new URL('offline-child.js', import.meta.url))

/** What starts a program with no network but the machine's own address. */
const CUT_OFF = [
  ['bwrap', '--dev-bind', '/', '/', '--unshare-net', '--die-with-parent', '--'],
  ['unshare', '--map-root-user', '--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh'],
].find(([program = '', ...args]) => {
  try {
    execFileSync(program, [...args, 'true'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})

t.test(
  'with the network off a fresh sandbox runs the demo',
  { skip: !CUT_OFF && 'this machine takes the network from no program' },
  async t => {
    const [program = '', ...args] = CUT_OFF!
    await t.spawn(program, [...args, process.execPath, CHILD], {}, 'in a place without a network')
  },
)
