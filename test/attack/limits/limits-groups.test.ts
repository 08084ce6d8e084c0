import { fileURLToPath } from 'node:url'
import t from 'tap'
import { cannotRun, inMachine, noMachine } from '../../support/machine.js'

const inside = fileURLToPath(new URL('limits-in-groups.js', import.meta.url))
const memory = new URL('../../../plugins/endpoints/local/memory.js', import.meta.url)
const MEASURE = `import { measureMemory } from "${memory}"
const { memoryBytes, memoryCapped } = await measureMemory({ proc: "/proc", sys: "/sys" })
console.log("a model may have " + memoryBytes + " " + memoryCapped)`

t.test('if control groups are writable, the system enforces the limits', { skip: noMachine() }, async t => {
  const printed = await inMachine(
    t,
    `
group=/sys/fs/cgroup/session
mkdir $group
echo '+memory +pids +cpu' > /sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/model
echo 134217728 > /sys/fs/cgroup/model/memory.max
sh -c 'echo $$ > /sys/fs/cgroup/model/cgroup.procs; exec "$@"' sh node --input-type=module -e '${MEASURE}'
echo $$ > $group/cgroup.procs
node '${inside}' $group && echo every limit held
`,
  )
  if (cannotRun(printed)) {
    return t.pass('limits', { skip: 'User Mode Linux cannot run programs on the processor of this machine' })
  }
  t.match(printed, /^every limit held\r?$/m)
  t.match(printed, /^a model may have 134217728 true\r?$/m, 'the fit of local models sees the limit of its group')
  if (!t.passing()) t.comment(printed)
})
