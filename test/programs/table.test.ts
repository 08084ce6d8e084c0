import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { project } from '../support/browser/page.js'
import { FEATURES } from './features.js'
import { pageOf, recordedPage, recordedTable } from './gate.js'
import { PROGRAMS } from './programs.js'

const { dependencies } = JSON.parse(readFileSync(join(project, '.ci/peers/package.json'), 'utf8')) as {
  dependencies: { [name: string]: string }
}

t.test('the page shows the table', t => {
  t.equal(recordedPage(), pageOf(recordedTable()))
  t.end()
})

t.test('the table has every feature of every program, at the version that is installed', t => {
  const table = recordedTable()
  for (const { id, package: name } of PROGRAMS) {
    t.equal(table[id]?.version, dependencies[name], id)
    t.same(
      Object.keys(table[id]?.cells ?? {}),
      FEATURES.map(feature => feature.id),
    )
    for (const [feature, cell] of Object.entries(table[id]?.cells ?? {}))
      t.match(cell, /^(?:yes|no: .{10,})$/, `${id} ${feature}`)
  }
  t.end()
})
