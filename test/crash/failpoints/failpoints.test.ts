import { globSync, readFileSync } from 'node:fs'
import t from 'tap'
import { FILES, reached, runCases } from './failpoint-cases.js'

runCases(t, 'failpoints')

t.test('every failpoint of the source ends a daemon in one of these tests', async t => {
  const sources = globSync('{kernel,plugins,sdk,openapi}/**/*.ts').map(file => readFileSync(file, 'utf8'))
  const points = sources.flatMap(text => [...text.matchAll(/\bfailpoint\('([^']+)'/g)].map(([, point]) => point!))
  t.same([...points].sort(), [...new Set(points)].sort(), 'each is in one place')
  t.same([...reached].sort(), [...points].sort())
  for (const file of FILES)
    t.match(
      readFileSync(`test/crash/failpoints/${file}.test.ts`, 'utf8'),
      `runCases(t, '${file}')`,
      'each file runs its share of the cases',
    )
})
