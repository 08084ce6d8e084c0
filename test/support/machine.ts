import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { ownProgram } from '../../sdk/node/programs/own-programs.js'
import { folderOf, root } from './daemon.js'

const program = await ownProgram('linux')
const LONGEST_MS = 240_000

/** The reason for skipping a test that needs its own machine; false: it runs. */
export const noMachine = (): string | false => {
  if (process.getuid?.() !== 0) return 'only the superuser starts a machine on the folders of this one'
  if (program !== undefined || process.env.CI) return false
  return 'User Mode Linux is not installed (apt-get install user-mode-linux)'
}

/** Mounts what programs expect of a system, then runs a script. */
const init = (script: string): string => `#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
for folder in /dev /run /tmp; do mount -t tmpfs none $folder; done
mkdir /dev/pts /dev/shm
mount -t devpts none /dev/pts
mount -t tmpfs none /dev/shm
mknod -m 666 /dev/null c 1 3
mknod -m 666 /dev/zero c 1 5
mknod -m 666 /dev/full c 1 7
mknod -m 666 /dev/random c 1 8
mknod -m 666 /dev/urandom c 1 9
mknod -m 666 /dev/tty c 5 0
ln -s /proc/self/fd /dev/fd
ln -s pts/ptmx /dev/ptmx
mount -t cgroup2 none /sys/fs/cgroup
ip link set lo up
export PATH='${process.env.PATH ?? ''}' HOME=/root TAP_TIMEOUT=200
cd '${root}'
${script}
halt -f
`

/**
 * Runs a script as the superuser of a separate Linux (User Mode Linux) that sees the files of this machine, has
 * cgroup v2 and no network; returns its output. A program in it can use about 250 MiB, since
 * each page takes one of the host's mappings (vm.max_map_count).
 */
export const inMachine = async (t: Test, script: string): Promise<string> => {
  const folder = folderOf(t)
  const first = join(folder, 'init')
  writeFileSync(first, init(script))
  chmodSync(first, 0o755)
  const machine = spawn(
    program ?? 'linux',
    ['rootfstype=hostfs', 'rootflags=/', 'rw', 'mem=2G', `init=${first}`, 'con=null', 'con0=null,fd:1', 'quiet'],
    { stdio: ['ignore', 'pipe', 'inherit'], env: { HOME: folder, TMPDIR: '/dev/shm' }, timeout: LONGEST_MS },
  )
  const [printed] = await Promise.all([text(machine.stdout), once(machine, 'close')])
  return printed
}

/** Whether such a Linux ended at its first program: it cannot keep the large registers of some new processors. */
export const cannotRun = (printed: string): boolean => /ptrace set fp regs failed/.test(printed)
