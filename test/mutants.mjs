// Plants the faults of mutants.json one at a time into a copy of the built program and runs the tests meant for that
// code. `npm run mutants [word …]` prints which were noticed, of all or of those with one of the words in their entry.
import { spawn } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { bundle } from '../.ci/bundle.mjs'

const ENOUGH = 0.95
const LONGEST = 240_000

const words = process.argv.slice(2)
const all = JSON.parse(readFileSync('test/mutants.json', 'utf8'))
const chosen = all.filter(mutant => words.length === 0 || words.some(word => JSON.stringify(mutant).includes(word)))

// What tests make lies in the working folder, so that has to be one of their own as well. It is not in /tmp, which
// turns have of their own.
mkdirSync('.tap', { recursive: true })
const scratch = realpathSync(mkdtempSync(resolve('.tap', 'mutants-')))
for (const name of readdirSync('.'))
  if (!['dist', '.git', '.tap'].includes(name)) symlinkSync(resolve(name), join(scratch, name))
mkdirSync(join(scratch, '.tap'))
cpSync('dist', join(scratch, 'dist'), { recursive: true })

/** Runs a test file; answers whether all of it passed. */
const passes = name =>
  new Promise(done => {
    const args = ['--single-threaded', '--import=./dist/test/support/leave.js', `dist/test/${name}.test.js`]
    const child = spawn(process.execPath, args, {
      cwd: scratch,
      stdio: 'ignore',
      detached: true,
      env: { ...process.env, TAP_TIMEOUT: String(LONGEST / 1000), TAP_BAIL: '1' },
    })
    const timer = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), LONGEST)
    child.once('exit', code => {
      clearTimeout(timer)
      // What a failed test left running goes with it.
      try {
        process.kill(-child.pid, 'SIGKILL')
      } catch {}
      done(code === 0)
    })
  })

/**
 * Puts a text into a file of the copy; what runs as a program of its own is bundled again for the tests that start it.
 */
const plant = async (file, text, bundled) => {
  writeFileSync(join(scratch, 'dist', file), text)
  if (bundled) await bundle(join(scratch, 'dist'), join(scratch, 'dist/bundle'))
}

const seconds = since => `${((performance.now() - since) / 1000).toFixed(0)} s`
let noticed = 0
let broken = 0
try {
  for (const name of new Set(chosen.flatMap(({ tests }) => tests))) {
    if (await passes(name)) continue
    broken += 1
    console.log(`broken    ${name} fails without any fault`)
  }
  for (const { file, text, replacement, tests, bundled = false } of broken ? [] : chosen) {
    const since = performance.now()
    const path = join('dist', file)
    const whole = readFileSync(path, 'utf8')
    const parts = whole.split(text)
    if (parts.length !== 2)
      throw new Error(`${file}: expected ${JSON.stringify(text)} once, found it ${parts.length - 1} times`)
    await plant(file, parts.join(replacement), bundled)
    let by
    for (const name of tests) if (by === undefined && !(await passes(name))) by = name
    await plant(file, whole, bundled)
    if (by !== undefined) noticed += 1
    const [was, is] = [text, replacement].map(code => code.trim().replaceAll(/\s+/g, ' ') || 'nothing')
    console.log(
      `${by === undefined ? 'MISSED   ' : 'noticed  '} ${file}: ${was} → ${is} `
        + `(${by === undefined ? '' : `${by}, `}${seconds(since)})`,
    )
  }
} finally {
  rmSync(scratch, { recursive: true, force: true })
}
console.log(`${noticed} of ${chosen.length} noticed`)
process.exitCode = broken === 0 && chosen.length > 0 && noticed >= chosen.length * ENOUGH ? 0 : 1
