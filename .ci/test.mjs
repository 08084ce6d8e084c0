// Runs the test files that the words of the command line name, all without one, and says which ten took longest. A word
// is a folder, or what a file's name is or begins with before a dash; options (`--jobs=1`) go to tap. After a run of
// all, up to five files that failed run again, one after the other: what failed only beside others is told and held.
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join, sep } from 'node:path'

/** A run in which more files fail is broken: nothing runs again. */
const MOST_AGAIN = 5

const args = process.argv.slice(2)
const words = args.filter(arg => !arg.startsWith('-'))
const all = globSync('dist/test/**/*.test.js', { exclude: ['**/fixtures/**', '**/bench/**'] }).sort()
const named = (file, word) =>
  `${file.replace(/\.test\.js$/, '')}/`.includes(`/${word.replace(/\/$/, '')}/`)
  || basename(file).startsWith(`${word}-`)
  || basename(file).startsWith(`${word}.`)
const files = words.length ? all.filter(file => words.some(word => named(file, word))) : []
if (words.length && !files.length) {
  console.error(`no test file is named ${words.join(' or ')}`)
  process.exit(1)
}

// The superuser's tests have their folders in memory: a disk takes its time for files that live short.
const folders = '.tap/fixtures'
mkdirSync(folders, { recursive: true })
const inMemory = `mount -t tmpfs -o mode=755 sandbox-tests ${folders}; exec "$0" "$@"`
const apart = ['unshare', '--mount', 'sh', '-c', inMemory]
const mounts = process.getuid?.() === 0 && spawnSync(apart[0], [...apart.slice(1), 'true']).status === 0

const tap = (files, options = [], env = {}) => {
  const [program, ...rest] = [
    ...(mounts ? apart : []),
    process.execPath,
    'node_modules/tap/dist/esm/run.mjs',
    ...args.filter(arg => arg.startsWith('-')),
    ...options,
    ...files,
  ]
  return spawnSync(program, rest, { stdio: 'inherit', env: { ...process.env, ...env } }).status ?? 1
}
const nameOf = file =>
  file
    .split(sep)
    .slice(2)
    .join('/')
    .replace(/\.test\.js$/, '')

const began = Date.now()
const ended = file => {
  const result = join('.tap/test-results', `${file}.tap`)
  if (!existsSync(result) || statSync(result).mtimeMs < began) return []
  const report = readFileSync(result, 'utf8')
  const ms = Number(
    report
      .match(/^# time=([\d.]+)ms$/gm)
      ?.at(-1)
      ?.slice(7, -2) ?? 0,
  )
  return [{ file, seconds: ms / 1000, failed: /^(?:not ok|Bail out!)/m.test(report) }]
}
let status = tap(files)
const results = all.flatMap(ended)
const failed = results.filter(result => result.failed).map(({ file }) => file)
if (status && !words.length && failed.length && failed.length <= MOST_AGAIN) {
  const report = process.env.TAP_OUTPUT_FILE
  status = tap(failed, ['--jobs=1'], report && { TAP_OUTPUT_FILE: `${report}.again` })
  console.log(`failed beside other files, and ${status ? 'again' : 'held'} alone: ${failed.map(nameOf).join(', ')}`)
}
const slowest = results.sort((a, b) => b.seconds - a.seconds).slice(0, 10)
console.log(
  `${((Date.now() - began) / 1000).toFixed(0)} s; `
    + `slowest: ${slowest.map(({ file, seconds }) => `${nameOf(file)} ${seconds.toFixed(1)}`).join(', ')}`,
)
process.exit(status)
