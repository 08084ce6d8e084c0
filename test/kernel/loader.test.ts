import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { daemonWith, folderOf, root } from '../support/daemon.js'

const forms = join(root, '..', 'test', 'support', 'forms', 'manifests', 'forms.json')

t.test('two plugins that serve the same route stop the start, and both are named', async t => {
  const folder = folderOf(t)
  const [manifests, workspace, data] = ['manifests', 'workspace', 'data'].map(name => join(folder, name)) as [
    string,
    string,
    string,
  ]
  for (const made of [manifests, workspace]) mkdirSync(made)
  const manifest = JSON.parse(readFileSync(forms, 'utf8')) as object
  for (const name of ['forms', 'other'])
    writeFileSync(join(manifests, `${name}.json`), JSON.stringify({ ...manifest, name }))
  await t.rejects(daemonWith(t, ['forms', 'other'], { manifests, workspace, data }), {
    message: /^other and forms both serve POST \/forms\/text$/,
  })
})
