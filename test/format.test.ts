import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import t from 'tap'

t.test('every file is formatted', async t => {
  const { scripts } = JSON.parse(await readFile('package.json', 'utf8')) as { scripts: { format: string } }
  const globs = [...scripts.format.matchAll(/"([^"]+)"/g)].map(([, glob]) => glob!)
  t.ok(globs.length)
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['node_modules/oxfmt/bin/oxfmt', '--config=.ci/format.json', '--list-different', ...globs],
    { encoding: 'utf8' },
  )
  t.equal(stdout, '', 'these files are not formatted: run `npm run format`')
  t.same([status, stderr], [0, ''])
})
