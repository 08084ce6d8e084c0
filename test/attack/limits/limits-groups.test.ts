import { fileURLToPath } from 'node:url'
import t from 'tap'
import { inMachine, noMachine } from '../../support/machine.js'

const inside = fileURLToPath(new URL('limits-in-groups.js', import.meta.url))

t.test('if control groups are writable, the system enforces the limits', { skip: noMachine() }, async t => {
  const printed = await inMachine(
    t,
    `
group=/sys/fs/cgroup/session
mkdir $group
echo '+memory +pids +cpu' > /sys/fs/cgroup/cgroup.subtree_control
echo $$ > $group/cgroup.procs
node '${inside}' $group && echo every limit held
`,
  )
  t.match(printed, /^every limit held\r?$/m)
  if (!t.passing()) t.comment(printed)
})
