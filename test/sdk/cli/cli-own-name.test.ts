import { execFileSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import t, { type Test } from 'tap'
import { VERBS } from '../../../sdk/cli/program.js'
import { asTyped, NAMED_VERBS, programName } from '../../../sdk/cli/terminal/own-name.js'
import { root } from '../../support/daemon.js'
import { PROGRAM, sandboxProcess } from './cli-process.js'

/** A folder outside the package of the program. */
const outside = (t: Test): string => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'outside-')))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return folder
}

t.test('of a command that was typed, such as Node itself, it reads the beginning alone', async t => {
  const folder = outside(t)
  const large = join(folder, 'node')
  writeFileSync(large, '')
  truncateSync(large, 300 * 1024 * 1024)
  const before = process.resourceUsage().maxRSS
  t.match(programName({ _: large }, folder, PROGRAM), PROGRAM)
  t.ok(process.resourceUsage().maxRSS - before < 100 * 1024, 'in KiB')
})

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
  t.equal(
    programName({ PATH: npm, npm_execpath: '/usr/bin/npm' }, elsewhere, PROGRAM),
    whole,
    "npm's PATH ends with its command",
  )
  t.equal(programName({ PATH: npm, npm_execpath: '/usr/bin/npm' }, project, join(npm, 'sandbox')), 'npx sandbox')
  t.equal(programName({}, join(root, '..'), PROGRAM), 'npx sandbox', 'in its own package')
  t.equal(programName({}, elsewhere, PROGRAM), whole)
  const nested = at('project', 'nested')
  writeFileSync(join(nested, 'package.json'), '{}')
  t.equal(programName({}, nested, PROGRAM), 'npx sandbox', 'npm looks for commands in the folders above too')
  const inOwn = mkdtempSync(join(root, '..', 'test', 'nested-'))
  t.teardown(() => rmSync(inOwn, { recursive: true }))
  t.equal(programName({}, inOwn, PROGRAM), 'npx sandbox', 'in a folder of its own package')
  writeFileSync(join(inOwn, 'package.json'), '{}')
  t.equal(programName({}, inOwn, PROGRAM), whole, 'in another package inside its own, where npm knows no such command')
  const other = at('other')
  symlinkSync(process.execPath, join(other, 'sandbox'))
  t.equal(programName({ PATH: other }, elsewhere, PROGRAM), whole, "somebody else's program of that name")
})

t.test('sentences of the daemon name the command as the person typed it, and nothing else', async t => {
  const self = 'npx sandbox'
  for (const [said, shown] of [
    ['run sandbox login here', 'run npx sandbox login here'],
    ['(sandbox network allow a:1)', '(npx sandbox network allow a:1)'],
    ['the sandbox network is its own', 'the sandbox network is its own'],
    ['/opt/sandbox login', '/opt/sandbox login'],
    ['a sandbox serves', 'a sandbox serves'],
  ] as const)
    t.equal(asTyped(said, self), shown)
})

t.test('no source but this one names a command that npx would look for elsewhere', async t => {
  const project = join(root, '..')
  const files = ['kernel', 'plugins', 'sdk', 'manifests'].flatMap(folder =>
    readdirSync(join(project, folder), { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile() && /\.(?:tsx?|json)$/.test(entry.name))
      .map(({ parentPath, name }) => relative(project, join(parentPath, name))),
  )
  t.ok(files.length > 500)
  const verbs = new Set(VERBS.map(({ name }) => name))
  for (const file of files) {
    const text = readFileSync(join(project, file), 'utf8')
    if (file !== 'sdk/cli/terminal/own-name.ts') t.notMatch(text, 'npx sandbox', file)
    if (file.startsWith('sdk/cli/')) continue
    for (const [, verb = ''] of text.matchAll(/(?:[:(`,]|run|with|use|of|or) sandbox ([a-z][a-z-]*)\b/g))
      if (verbs.has(verb) && verb !== 'script-agent') t.ok(NAMED_VERBS.includes(verb), `${file} names sandbox ${verb}`)
  }
})

t.test('a printed hint works, outside the package and without an installation', async t => {
  const cwd = outside(t)
  const { err } = await sandboxProcess(['agents'], { cwd, env: { PATH: process.env.PATH ?? '' } })
  const command = /start one with "(.+) serve"/.exec(err)?.[1] ?? ''
  t.match(execFileSync('sh', ['-c', `${command} --version`], { cwd, encoding: 'utf8' }), /^\d+\.\d+\.\d+\n$/)
})
