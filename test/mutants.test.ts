import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'

/** A fault that `npm run mutants` plants, and the tests that are to notice it. */
interface Mutant {
  readonly file: string
  readonly text: string
  readonly replacement: string
  readonly tests: readonly string[]
  /** The tests start the program, which is bundled from the file. */
  readonly bundled?: true
}

const mutants = JSON.parse(readFileSync('test/mutants.json', 'utf8')) as Mutant[]

t.test('every fault of the list can still be planted, at one place', t => {
  const times = ({ file, text }: Mutant) =>
    existsSync(`dist/${file}`) ? readFileSync(`dist/${file}`, 'utf8').split(text).length - 1 : 0
  t.same(
    mutants
      .filter(mutant => times(mutant) !== 1)
      .map(mutant => `${mutant.file} has ${times(mutant)} times: ${mutant.text}`),
    [],
  )
  t.same(
    mutants.filter(({ text, replacement }) => text === replacement),
    [],
  )
  t.end()
})

t.test('every fault of the list is there once, and the tests that are to notice it exist', t => {
  const keys = mutants.map(({ file, text, replacement }) => JSON.stringify([file, text, replacement]))
  t.same(
    keys.filter((key, at) => keys.indexOf(key) !== at),
    [],
  )
  t.same(
    mutants.filter(({ tests }) => tests.length === 0),
    [],
  )
  t.same(
    mutants.flatMap(({ tests }) => tests).filter(name => !existsSync(`test/${name}.test.ts`)),
    [],
  )
  t.end()
})
