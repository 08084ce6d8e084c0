import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { listEnv } from '../../../../sdk/node/run.js'
import { endLeftWalls } from '../../../../sdk/node/wall/left.js'
import { walled } from '../../../../sdk/node/wall/wall.js'
import { onceIn } from '../../../support/changes.js'
import { openFolder } from '../../../support/stuck.js'

/** Runs what comes after it only when its own parent is gone, and says which process that is. */
const ORPHANED = '(while kill -0 $$ 2> /dev/null; do :; done; exec "$@") > /dev/null 2>&1 & echo $!'

const isRunning = (pid: number): boolean => existsSync(`/proc/${pid}`) && readFileSync(`/proc/${pid}/cmdline`, 'utf8') !== ''

const place = (folder: string) => {
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  for (const each of [workspace, data]) mkdirSync(each, { recursive: true })
  return { workspace, data, cwd: workspace, env: listEnv() }
}
const probe = place(realpathSync(t.testdir()))

for (const kind of ['bwrap', 'unshare'] as const) {
  const starts = (await walled(probe, 'true', [], kind)).enforced
  const options = starts || process.env.CI ? {} : { skip: `${kind} does not start here` }

  t.test(`what runs behind a wall of ${kind} whose daemon died while it was built is ended`, options, async t => {
    const spec = place(openFolder(t))
    const { program, args, env, cwd } = await walled(spec, 'sh', ['-c', ': > on; sleep 3573'], kind)
    const parent = spawn('sh', ['-c', ORPHANED, 'sh', program, ...args], { cwd, env: { ...env }, stdio: ['ignore', 'pipe', 'ignore'] })
    const [said] = (await once(parent.stdout, 'data')) as [Buffer]
    const pid = Number(String(said))
    await onceIn(spec.workspace, () => existsSync(join(spec.workspace, 'on')))
    t.equal(await endLeftWalls(join(spec.data, 'other')), 0, 'a wall of another daemon is left alone')
    t.ok(isRunning(pid))
    t.not(await endLeftWalls(spec.data), 0)
    t.notOk(isRunning(pid))
    t.equal(await endLeftWalls(spec.data), 0, 'nothing is left')
  })

  t.test(`a wall of ${kind} whose daemon lives is left alone`, options, async t => {
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
}
