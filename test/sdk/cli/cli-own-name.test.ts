import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { programName } from '../../../sdk/cli/terminal/own-name.js'
import { root } from '../../support/daemon.js'
import { PROGRAM, sandboxProcess } from './cli-process.js'

/** A folder outside the package of the program. */
const outside = (t: Test): string => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'outside-')))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return folder
}

t.test('the program names itself as it can be typed in the current folder', async t => {
  const folder = outside(t)
  const at = (...names: string[]): string => {
    const made = join(folder, ...names)
    mkdirSync(made, { recursive: true })
    return made
  }
  const [bin, npm, project, elsewhere] = [
    at('bin'),
    at('project', 'node_modules', '.bin'),
    at('project', 'src'),
    at('elsewhere'),
  ]
  for (const place of [bin, npm]) symlinkSync(PROGRAM, join(place, 'sandbox'))
  const whole = `${process.execPath} ${PROGRAM}`
  t.equal(programName({ PATH: `/nowhere:${bin}` }, elsewhere, PROGRAM), 'sandbox')
  t.equal(programName({ PATH: npm }, elsewhere, PROGRAM), whole, "npm's PATH ends with its command")
  t.equal(programName({ PATH: npm }, project, join(npm, 'sandbox')), 'npx sandbox')
  t.equal(programName({}, join(root, '..'), PROGRAM), 'npx sandbox', 'in its own package')
  t.equal(programName({}, elsewhere, PROGRAM), whole)
  const other = at('other')
  symlinkSync(process.execPath, join(other, 'sandbox'))
  t.equal(programName({ PATH: other }, elsewhere, PROGRAM), whole, "somebody else's program of that name")
})

t.test('a printed hint works, outside the package and without an installation', async t => {
  const cwd = outside(t)
  const { err } = await sandboxProcess(['agents'], { cwd, env: { PATH: process.env.PATH ?? '' } })
  const command = /start one with "(.+) serve"/.exec(err)?.[1] ?? ''
  t.match(execFileSync('sh', ['-c', `${command} --version`], { cwd, encoding: 'utf8' }), /^\d+\.\d+\.\d+\n$/)
})
