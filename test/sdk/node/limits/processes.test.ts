import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { tmpfsBehind } from '../../../../sdk/node/limits/processes.js'
import { noWall } from '../../../support/walls.js'
import { wallKind } from '../../../../sdk/node/wall/wall.js'

const MIB = 1024 ** 2
/** Memory file systems with odd names, mounted twice, below others, and below a disk. */
const MOUNTS = `
set -e
for name in 'a b' 'tab	é' plain; do
  mkdir -p "$1/$name" "$1/again $name"
  mount -n -t tmpfs none "$1/$name"
  head -c 1048576 /dev/zero > "$1/$name/filled"
  mount -n --bind "$1/$name" "$1/again $name"
  mount -n -t tmpfs none "$1/again $name"
done
mkdir "$1/covered"
mount -n -t tmpfs none "$1/covered"
mount -n --rbind /usr "$1/covered"
echo ready
exec sleep 60
`

/** A list of processes as proc(5) has it. */
const listed = (t: Test, mountinfo: string): string => {
  const proc = t.testdir({ 7: { ns: {}, mountinfo } })
  symlinkSync('mnt:[1]', join(proc, '7/ns/mnt'))
  symlinkSync('/', join(proc, '7/root'))
  return proc
}

t.test(
  'a memory file system counts by what lies in it, whatever its name and its cover',
  { skip: noWall((await wallKind()) !== 'none') },
  async t => {
    const folder = t.testdir({ at: {}, proc: {} })
    const child = spawn(
      'unshare',
      ['--user', '--map-root-user', '--mount', '--', 'sh', '-c', MOUNTS, 'sh', join(folder, 'at')],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    t.teardown(() => child.kill('SIGKILL'))
    t.match(String((await once(child.stdout, 'data'))[0]), 'ready')
    symlinkSync(`/proc/${child.pid}`, join(folder, 'proc/7'))
    const bytes = tmpfsBehind(join(folder, 'proc'))
    t.ok(bytes >= 3 * MIB && bytes < 4 * MIB, `3 MiB were written, found ${bytes / MIB}`)
  },
)

t.test('mounts that would take long to look at count as too much', t => {
  const many = Array.from({ length: 5000 }, (_, at) => `${at} 1 0:${70_000 + at} / /m${at} rw - tmpfs none rw`)
  t.equal(tmpfsBehind(listed(t, many.join('\n'))), Infinity)
  t.equal(tmpfsBehind(listed(t, `1 1 8:1 / /${'m'.repeat(5 * MIB)} rw - ext4 none rw\n`)), Infinity)
  t.equal(tmpfsBehind(listed(t, many.slice(0, 100).join('\n'))), 0, 'what cannot be looked at')
  t.end()
})
