import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { groupNeeds } from '../../../../sdk/cli/doctor/doctor.js'
import { installAll, installOf, lackingOn, type LackingGroup } from '../../../../sdk/cli/doctor/lacking.js'
import { exactly } from '../../../support/lists.js'
import { sandbox } from '../cli-process.js'

const root = fileURLToPath(new URL('../../../../bundle', import.meta.url))
const groups = await groupNeeds(root)
const machine = (has: (name: string) => boolean, walled = true) => ({
  hasProgram: async (name: string) => has(name),
  hasDevice: async (path: string) => has(path),
  hasWall: async () => walled,
})

t.test('every program that a group uses is one that the doctor knows how to get', async t => {
  const programs = [...new Set(groups.flatMap(each => each.programs))]
  t.ok(programs.length > 30)
  for (const program of programs)
    t.match(installOf(program), /^apt-get install [a-z0-9][a-z0-9.+-]+$|^install .*\(/, program)
})

t.test('a machine that has all lacks nothing, and one that has nothing lacks all of it, by group', async t => {
  t.same(
    await lackingOn(
      groups,
      machine(() => true),
    ),
    [],
  )
  const lacking = await lackingOn(
    groups,
    machine(() => false, false),
  )
  const using = groups.filter(({ programs }) => programs.length > 0).map(({ name }) => name)
  t.same(
    lacking.map(({ group }) => group),
    using.sort(),
  )
  for (const { group, missing } of lacking)
    for (const program of groups.find(({ name }) => name === group)!.programs)
      t.ok(
        missing.some(({ name }) => name === program),
        `${group}: ${program}`,
      )
  t.match(lacking.find(({ group }) => group === 'agent')?.missing.at(-1), {
    what: 'privilege',
    name: 'user namespaces',
  })
})

t.test('what is missing is named with its package and device', async t => {
  const lacking = await lackingOn(
    groups,
    machine(name => name !== 'sshfs' && name !== '/dev/fuse' && name !== 'tmux'),
  )
  t.match(
    lacking,
    exactly(
      {
        group: 'disks',
        missing: exactly(
          { what: 'program', name: 'sshfs', install: 'apt-get install sshfs' },
          { what: 'device', name: '/dev/fuse', install: /--device \/dev\/fuse/ },
        ),
      },
      { group: 'system', missing: exactly({ what: 'program', name: 'tmux', install: 'apt-get install tmux' }) },
    ),
  )
  t.equal(installAll(lacking), 'apt-get install sshfs tmux')
  t.equal(installAll([]), undefined)
})

t.test('the command says of this machine what the shell says, without a daemon', async t => {
  const { code, out } = await sandbox(['doctor', '--json'])
  t.equal(code, 0)
  const { groups: found } = JSON.parse(out) as { groups: LackingGroup[] }
  const programs = found.flatMap(({ missing }) => missing).filter(({ what }) => what === 'program')
  for (const { name } of programs)
    t.throws(() => execFileSync('sh', ['-c', 'command -v "$0"', name], { stdio: 'ignore' }), `${name} is missing`)
  const text = (await sandbox(['doctor'])).out
  for (const { name } of programs) t.match(text, name)
  t.match(await sandbox(['doctor', 'x']), { code: 2 })
})
