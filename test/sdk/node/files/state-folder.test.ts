import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { boundCompiled } from '../../../../sdk/node/files/state-folder.js'
import { folderOf } from '../../../support/daemon.js'

t.test('the compiled program of earlier versions is removed once it is more than 4,000 files', async t => {
  const state = folderOf(t)
  const env = { XDG_STATE_HOME: state }
  await boundCompiled(env)
  const compiled = join(state, 'sandbox/compiled')
  const keep = (version: string, files: number) => {
    mkdirSync(join(compiled, version), { recursive: true })
    for (let at = 0; at < files; at++) writeFileSync(join(compiled, version, String(at)), '')
  }
  keep('v24', 3000)
  keep('v25', 1000)
  await boundCompiled(env)
  t.ok(existsSync(compiled), 'as many stay')
  keep('v25', 1001)
  await boundCompiled(env)
  t.notOk(existsSync(compiled))
})
