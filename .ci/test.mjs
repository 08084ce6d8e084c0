// Runs the test files that the words of the command line name, and says which ten took longest. Without a word it
// runs all with SANDBOX_TESTS=all (or every: with all their cases), else those that are not long. A word is a folder,
// or what a file's name is or begins with before a dash; options (`--jobs=1`) go to tap. Files that need no process
// of their own share one, a few at a time. Up to five files that failed run again, each in a process of its own:
// those that hold then are named.
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, join, sep } from 'node:path'

/** A run in which more files fail is broken: nothing runs again. */
const MOST_AGAIN = 5

/** Files that share a process: it loads the program once, and ends well within the time limit of one. */
const TOGETHER = 8

/** Those of the console share a browser too, and take longer: four to a process. */
const IN_BROWSER = /^dist\/test\/plugins\/console\//
const TOGETHER_IN_BROWSER = 4

/** These measure or fill their process, or take long enough that loading the program does not matter. */
const ALONE = new RegExp(
  String.raw`^dist/test/(?:[^/]+\.test\.js$|(?:attack|clients|crash|museum|programs|shipped)/`
    + String.raw`|plugins/(?:console/budgets|.*/terminals-capture)\.)`,
)

/** What takes most of the time: attacks, kills, agent programs, installs, and walks through every page. */
const LEFT_OUT = new RegExp(
  String.raw`^dist/test/(?:(?:attack/(?:attempts|browser|limits|machine|network|texts|wall|work)|clients|crash|museum`
    + String.raw`|programs|sdk/cli/machine|shipped)/.*`
    + String.raw`|attack/(?:extension.*|hand-written-values|hostile-servers|ordinary-user|planted-.*)`
    + String.raw`|apart|bench|offline|places|readme|readme-agents`
    + String.raw`|sdk/(?:package|cli-extension|cli/cli-complete|examples/journey)`
    + String.raw`|plugins/agent/(?:copies/copies-(?:conversion|names)`
    + String.raw`|providers/(?:connected-programs|opencode|shared-programs))`
    + String.raw`|plugins/cli/deploy|plugins/console/(?:every-page|journeys|first-touch/.*)|plugins/secrets/shell-line`
    + String.raw`|plugins/(?:capabilities/(?:agent-plugins|docker|sites)|extensions/connected)`
    + String.raw`|plugins/(?:vpn/tunnels|exit/(?:onion|tunnels))`
    + String.raw`|plugins/workspace/real-managers)\.test\.js$`,
)

/** The longest begin first, so that nothing long is left for the end. */
const LONG = new RegExp(
  String.raw`^dist/test/(?:attack/(?:ordinary-user|work/(?:every-name|no-plain-files)|wall/containers)|bench`
    + String.raw`|museum/museum|programs/.*|readme|shipped/shipped`
    + String.raw`|crash/(?:failpoints/.*|random.*|access|turns|extensions))\.test\.js$`,
)
/** Tap starts files in the order of their names: this folder is before the others. */
const AHEAD = 'dist/test/ahead'

const args = process.argv.slice(2)
const words = args.filter(arg => !arg.startsWith('-'))
const all = globSync('dist/test/**/*.test.js', { exclude: ['**/fixtures/**', '**/bench/**', '**/{ahead,together}/**'] })
  .map(file => file.split(sep).join('/'))
  .sort()
const named = (file, word) =>
  `${file.replace(/\.test\.js$/, '')}/`.includes(`/${word.replace(/\/$/, '')}/`)
  || basename(file).startsWith(`${word}-`)
  || basename(file).startsWith(`${word}.`)
const everything = ['all', 'every'].includes(process.env.SANDBOX_TESTS)
const files = words.length
  ? all.filter(file => words.some(word => named(file, word)))
  : all.filter(file => everything || !LEFT_OUT.test(file))
if (words.length && !files.length) {
  console.error(`no test file is named ${words.join(' or ')}`)
  process.exit(1)
}

const nameOf = file => file.replace(/^dist\/test\//, '').replace(/\.test\.js$/, '')

const groupsOf = (files, size) =>
  Array.from({ length: Math.ceil(files.length / size) }, (_, at) => files.slice(at * size, (at + 1) * size))

/** What tap starts, each with the test files in it: one of those that run alone, or a few of the others. */
const processes = files => {
  const folder = 'dist/test/together'
  for (const each of [folder, AHEAD]) {
    rmSync(each, { recursive: true, force: true })
    mkdirSync(each, { recursive: true })
  }
  const others = files.filter(file => !ALONE.test(file))
  const groups = [
    ...groupsOf(
      others.filter(file => IN_BROWSER.test(file)),
      TOGETHER_IN_BROWSER,
    ),
    ...groupsOf(
      others.filter(file => !IN_BROWSER.test(file)),
      TOGETHER,
    ),
  ]
  const shared = groups.map((several, at) => {
    const file = `${folder}/${at + 1}.test.js`
    const text = `import { together } from '../support/together.js'\nawait together(${JSON.stringify(several)})\n`
    writeFileSync(file, text)
    return { file, files: several }
  })
  const alone = files.filter(file => ALONE.test(file)).map(file => ({ file, files: [file] }))
  const ahead = ({ file }) => {
    const first = `${AHEAD}/${nameOf(file).replaceAll('/', '-')}.test.js`
    writeFileSync(first, `import '../${nameOf(file)}.test.js'\n`)
    return { file: first, files: [file] }
  }
  const isLong = ({ file }) => LONG.test(file)
  return [...alone.filter(isLong).map(ahead), ...shared, ...alone.filter(each => !isLong(each))]
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
const began = Date.now()
/** What tap recorded of a process, and of each file in it: a file without an end has failed. */
const ended = ({ file, files }) => {
  const result = join('.tap/test-results', `${file}.tap`)
  const report = existsSync(result) && statSync(result).mtimeMs >= began ? readFileSync(result, 'utf8') : ''
  const seconds = (line, end) => Number(line.match(new RegExp(`# time=([\\d.]+)ms${end}`))?.[1] ?? 0) / 1000
  if (files.length === 1)
    return [
      { file: files[0], seconds: seconds(report, '\\s*$'), failed: !report || /^(?:not ok|Bail out!)/m.test(report) },
    ]
  return files.map(file => {
    const line = report.split('\n').find(line => /^(?:not )?ok \d/.test(line) && line.includes(` - ${file}`)) ?? ''
    return { file, seconds: seconds(line, ''), failed: !line.startsWith('ok') }
  })
}
const started = processes(files)
let status = tap(started.map(({ file }) => file))
const results = started.flatMap(ended)
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
if (!words.length && files.length < all.length)
  console.log(`long files left out: ${all.length - files.length}; SANDBOX_TESTS=all runs them too`)
process.exit(status)
