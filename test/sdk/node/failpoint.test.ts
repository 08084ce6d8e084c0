import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { root } from '../../support/daemon.js'

const PASSES = `
const { failpoint } = await import(${JSON.stringify(join(root, 'sdk/node/failpoint.js'))})
failpoint('here')
console.log('once', 'SANDBOX_FAILPOINT' in process.env)
failpoint('here', () => console.log('last'))
console.log('twice')
`
const run = (point?: string) => {
  const { SANDBOX_FAILPOINT: _none, ...env } = process.env
  const { stdout, signal } = spawnSync(process.execPath, ['--input-type=module', '-e', PASSES], {
    encoding: 'utf8',
    env: { ...env, ...(point !== undefined && { SANDBOX_FAILPOINT: point }) },
  })
  return { stdout, signal }
}

t.test('a failpoint does nothing unless it is named', async t => {
  const unharmed = { stdout: 'once false\ntwice\n', signal: null }
  for (const point of [undefined, '', 'there', 'here.too', 'here:3', 'here:x']) t.same(run(point), unharmed, `${point}`)
})

t.test('a named failpoint ends the process at once, or at its nth pass', async t => {
  t.same(run('here'), { stdout: '', signal: 'SIGKILL' })
  t.same(run('here:2'), { stdout: 'once false\nlast\n', signal: 'SIGKILL' }, 'children do not get the variable')
})
