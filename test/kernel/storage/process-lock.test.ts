import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { lockFile } from '../../../kernel/storage/process-lock.js'

t.test('taking a lock removes the files of processes that were killed while taking it', async t => {
  const folder = t.testdir()
  const [dead, empty] = [spawnSync('true').pid, spawnSync('true').pid]
  writeFileSync(join(folder, `a.lock.${dead}`), JSON.stringify({ pid: dead }))
  writeFileSync(join(folder, `a.lock.${empty}`), '')
  writeFileSync(join(folder, 'a.lock.1'), JSON.stringify({ pid: 1 }))
  writeFileSync(join(folder, 'a.lock.notes'), 'mine')
  const held = lockFile(join(folder, 'a.lock'))
  t.same(readdirSync(folder).sort(), ['a.lock', 'a.lock.1', 'a.lock.notes'])
  if ('release' in held) held.release()
})

t.test('a lock whose holder is a zombie is free', async t => {
  const folder = t.testdir()
  // The shell is replaced by another program that never waits for its child.
  const around = spawn('sh', ['-c', 'sleep 0.3 & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'ignore'] })
  t.teardown(() => around.kill())
  const [line] = (await once(around.stdout, 'data')) as [Buffer]
  const pid = Number(line)
  const status = () => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]![0]
  while (status() !== 'Z') await new Promise(resolve => setImmediate(resolve))
  writeFileSync(join(folder, 'a.lock'), JSON.stringify({ pid }))
  const held = lockFile(join(folder, 'a.lock'))
  t.ok('release' in held)
  if ('release' in held) held.release()
})
