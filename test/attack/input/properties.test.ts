import { readFileSync } from 'node:fs'
import t from 'tap'
import { probeCalls, SHARES } from './properties.js'

probeCalls(t, 'properties')

t.test('each share of the calls has a file', async t => {
  for (const share of SHARES)
    t.match(readFileSync(`test/attack/input/${share}.test.ts`, 'utf8'), `probeCalls(t, '${share}')`)
})
