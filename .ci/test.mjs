// Runs the test files that the words of the command line name, all without one, and says which ten took longest. A word
// is a folder, or what a file's name is or begins with before a dash; options (`--jobs=1`) go to tap.
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join, sep } from 'node:path'

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

const began = Date.now()
const [program, ...rest] = [
  ...(mounts ? apart : []),
  process.execPath,
  'node_modules/tap/dist/esm/run.mjs',
  ...args.filter(arg => arg.startsWith('-')),
  ...files,
]
const { status } = spawnSync(program, rest, { stdio: 'inherit' })

const took = file => {
  const result = join('.tap/test-results', `${file}.tap`)
  if (!existsSync(result) || statSync(result).mtimeMs < began) return []
  const ms = Number(
    readFileSync(result, 'utf8')
      .match(/^# time=([\d.]+)ms$/gm)
      ?.at(-1)
      ?.slice(7, -2) ?? 0,
  )
  return [
    {
      name: file
        .split(sep)
        .slice(2)
        .join('/')
        .replace(/\.test\.js$/, ''),
      seconds: ms / 1000,
    },
  ]
}
const slowest = all
  .flatMap(took)
  .sort((a, b) => b.seconds - a.seconds)
  .slice(0, 10)
console.log(
  `${((Date.now() - began) / 1000).toFixed(0)} s; `
    + `slowest: ${slowest.map(({ name, seconds }) => `${name} ${seconds.toFixed(1)}`).join(', ')}`,
)
process.exit(status ?? 1)
