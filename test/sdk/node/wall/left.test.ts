import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { listEnv } from '../../../../sdk/node/programs/run.js'
import { endLeftWalls } from '../../../../sdk/node/wall/left.js'
import { markOf } from '../../../../sdk/node/wall/mark.js'
import { walled } from '../../../../sdk/node/wall/wall.js'
import { onceIn } from '../../../support/changes.js'
import { openFolder } from '../../../support/stuck.js'
import { noWall } from '../../../support/walls.js'

/** Runs the rest only when its parent has ended, and prints its process id. */
const ORPHANED = '(while kill -0 $$ 2> /dev/null; do :; done; exec "$@") > /dev/null 2>&1 & echo $!'

const isRunning = (pid: number): boolean =>
  existsSync(`/proc/${pid}`) && readFileSync(`/proc/${pid}/cmdline`, 'utf8') !== ''

const place = (folder: string) => {
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  for (const each of [workspace, data]) mkdirSync(each, { recursive: true })
  return { workspace, data, cwd: workspace, env: listEnv() }
}
const probe = place(realpathSync(t.testdir()))

t.test("a person's process is not ended, whatever its name and arguments", async t => {
  const { workspace, data } = place(openFolder(t))
  await walled({ workspace, data, cwd: workspace, env: listEnv() }, 'true', [])
  const sleeps = (program: string, args: readonly string[], argv0 = program) =>
    spawn('sh', ['-c', '"$@" & echo $!', 'sh', program, ...args], {
      argv0,
      stdio: ['ignore', 'pipe', 'ignore'],
      cwd: data,
    })
  const others = [
    sleeps('sh', ['-c', 'sleep 3574 > /dev/null; true', data]),
    sleeps('setpriv', ['--', 'sh', '-c', 'sleep 3574 > /dev/null; true', 'wall', data, join(data, 'wall')]),
    sleeps('unshare', ['--', 'sh', '-c', 'sleep 3574 > /dev/null; true', 'bwrap', '--unsetenv', 'SANDBOX_WALL', data]),
  ]
  const pids = await Promise.all(
    others.map(async child => Number(String(((await once(child.stdout, 'data')) as [Buffer])[0]))),
  )
  t.teardown(() => pids.forEach(pid => process.kill(pid, 'SIGKILL')))
  t.equal(await endLeftWalls(data), 0)
  for (const pid of pids) t.ok(isRunning(pid))
})

t.test('the mark of a data folder is random, stored in it, and the same for concurrent readers', async t => {
  const [one, other] = [place(openFolder(t)), place(openFolder(t))]
  t.match(await markOf(one.data), /^SANDBOX_WALL_[0-9a-f]{32}$/)
  t.not(await markOf(one.data), await markOf(other.data))
  const file = join(one.data, 'wall/mark')
  t.equal(readFileSync(file, 'utf8'), await markOf(one.data))
  const third = place(openFolder(t)).data
  const script =
    `import(${JSON.stringify(new URL('../../../../sdk/node/wall/mark.js', import.meta.url).href)}).then(async `
    + `({ markOf }) => process.stdout.write(await markOf(${JSON.stringify(third)})))`
  const asked = await Promise.all(
    [1, 2, 3].map(async () => String((await promisify(execFile)(process.execPath, ['-e', script])).stdout)),
  )
  t.same(
    asked,
    asked.map(() => readFileSync(join(third, 'wall/mark'), 'utf8')),
  )
})

for (const kind of ['bwrap', 'unshare'] as const) {
  const starts = (await walled(probe, 'true', [], kind)).enforced
  const options = { skip: noWall(starts, kind) }

  t.test(`programs behind a wall of ${kind} whose daemon was killed during its start are ended`, options, async t => {
    const spec = place(openFolder(t))
    const { program, args, env, cwd } = await walled(spec, 'sh', ['-c', ': > on; sleep 3573'], kind)
    const parent = spawn('sh', ['-c', ORPHANED, 'sh', program, ...args], {
      cwd,
      env: { ...env },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const [said] = (await once(parent.stdout, 'data')) as [Buffer]
    const pid = Number(String(said))
    await onceIn(spec.workspace, () => existsSync(join(spec.workspace, 'on')))
    t.equal(await endLeftWalls(join(spec.data, 'other')), 0, 'a wall of another daemon is not ended')
    t.ok(isRunning(pid))
    t.not(await endLeftWalls(spec.data), 0)
    t.notOk(isRunning(pid))
    t.equal(await endLeftWalls(spec.data), 0, 'nothing is left')
  })

  t.test(`a wall of ${kind} whose daemon is running is not ended`, options, async t => {
    const spec = place(openFolder(t))
    const { program, args, env, cwd } = await walled(spec, 'sh', ['-c', ': > on; sleep 3573'], kind)
    const child = spawn(program, args, { cwd, env: { ...env }, stdio: 'ignore' })
    const over = once(child, 'exit')
    await onceIn(spec.workspace, () => existsSync(join(spec.workspace, 'on')))
    t.equal(await endLeftWalls(spec.data), 0)
    t.ok(isRunning(child.pid!))
    child.kill('SIGKILL')
    await over
  })

  t.test(
    `the mark is invisible behind a wall of ${kind} and changes nothing, and no program inside counts as leftover`,
    options,
    async t => {
      const spec = place(openFolder(t))
      const mark = await markOf(spec.data)
      const { program, args, env, cwd } = await walled(
        spec,
        'sh',
        ['-c', 'env > seen; sleep 3575 > /dev/null; true', mark],
        kind,
      )
      const child = spawn(program, args, { cwd, env: { ...env }, stdio: 'ignore' })
      const over = once(child, 'exit')
      await onceIn(
        spec.workspace,
        () =>
          existsSync(join(spec.workspace, 'seen'))
          && readFileSync(join(spec.workspace, 'seen'), 'utf8').includes('PWD='),
      )
      t.notMatch(readFileSync(join(spec.workspace, 'seen'), 'utf8'), 'SANDBOX')
      t.equal(await endLeftWalls(spec.data), 0, 'also with the mark among the arguments of a program inside')
      t.ok(isRunning(child.pid!))
      child.kill('SIGKILL')
      await over
    },
  )
}
