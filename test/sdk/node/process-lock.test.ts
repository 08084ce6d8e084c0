import { spawnSync } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { lockFile } from '../../../sdk/node/process-lock.js'

t.test('what processes left beside a lock that died while they took it goes when it is taken', async t => {
  const folder = t.testdir()
  const dead = spawnSync('true').pid
  writeFileSync(join(folder, `a.lock.${dead}`), JSON.stringify({ pid: dead }))
  writeFileSync(join(folder, 'a.lock.1'), JSON.stringify({ pid: 1 }))
  writeFileSync(join(folder, 'a.lock.notes'), 'mine')
  const held = lockFile(join(folder, 'a.lock'))
  t.same(readdirSync(folder).sort(), ['a.lock', 'a.lock.1', 'a.lock.notes'])
  if ('release' in held) held.release()
})
