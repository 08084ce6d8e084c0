import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { boundCompiled, dataFolders, noteDataFolder, stateFolder } from '../../../../sdk/node/files/state-folder.js'
import { walled } from '../../../attack/support.js'
import { folderOf, root } from '../../../support/daemon.js'

t.test('a daemon with a /tmp of its own forgets no data folder that it does not see', walled(), t => {
  const base = folderOf(t)
  const env = { XDG_STATE_HOME: join(base, 'state') }
  const at = (name: string) => ({ data: join(base, 'tmp', name), workspace: join(base, name) })
  for (const name of ['live', 'gone']) mkdirSync(at(name).data, { recursive: true })
  for (const name of ['live', 'gone']) noteDataFolder(env, at(name))
  const module = join(root, 'sdk/node/files/state-folder.js')
  const [from, what] = [module, at('own')].map(value => JSON.stringify(value))
  const program = `import(${from}).then(m => m.noteDataFolder(process.env, ${what}))`
  const inside = 'mount -t tmpfs none "$1" && mkdir "$1/own" && exec "$2" -e "$3"'
  const args = ['-rm', 'sh', '-c', inside, 'sh', join(base, 'tmp'), process.execPath, program]
  execFileSync('unshare', args, { env: { ...process.env, ...env } })
  const noted = () => dataFolders(stateFolder(env)).map(folder => folder.slice(base.length + 5))
  t.same(noted().sort(), ['gone', 'live', 'own'])

  rmSync(at('gone').data, { recursive: true })
  noteDataFolder(env, at('live'))
  t.same(noted().sort(), ['live', 'own'], 'one with the same view forgets those that are gone')
  const notes = join(stateFolder(env), 'elsewhere')
  const old = new Date(Date.now() - 100 * 24 * 3_600_000)
  for (const name of readdirSync(notes)) utimesSync(join(notes, name), old, old)
  noteDataFolder(env, at('live'))
  t.same(noted(), ['live'], 'and, after 90 days, those of another view too')
  t.end()
})

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
