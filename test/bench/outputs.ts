import { readdirSync, readFileSync } from 'node:fs'
import { CATALOGUE } from '../../sdk/node/outputs/catalogue.js'
import { cleanOutput } from '../../sdk/node/outputs/clean.js'
import { programsOf } from '../../sdk/node/outputs/commands.js'

const FOLDER = new URL('../../../test/fixtures/outputs/', import.meta.url)
const ids = new Set(CATALOGUE.map(({ id }) => id))
const programs = programsOf('npm test')

const median = (times: number[]): number => times.sort((one, other) => one - other)[Math.floor(times.length / 2)]!

const timeOf = (text: string): number =>
  median(
    Array.from({ length: 9 }, () => {
      const began = performance.now()
      cleanOutput(text, programs, ids)
      return performance.now() - began
    }),
  )

/** What shortening an output costs: of each recorded one, and of 1 MiB of all of them, the most that is kept. */
const all = readdirSync(FOLDER).map(name => [name, readFileSync(new URL(name, FOLDER), 'utf8')] as const)
for (const [name, text] of all) console.log(`${name}: ${text.length} characters in ${timeOf(text).toFixed(2)} ms`)
const together = all.map(([, text]) => text).join('\n')
const large = together.repeat(Math.ceil(1_048_576 / together.length)).slice(0, 1_048_576)
console.log(`1 MiB in ${timeOf(large).toFixed(1)} ms`)
console.log(`1 MiB of one line in ${timeOf('x'.repeat(1_048_576)).toFixed(1)} ms`)
console.log(`1 MiB of one drawn line in ${timeOf('[==>  ] 12%\r'.repeat(87_000)).toFixed(1)} ms`)
