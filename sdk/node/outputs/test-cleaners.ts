import { cleanerOf, type LineCleaner } from './cleaner.js'

const YAML = /^\s*---\s*$/
const YAML_END = /^\s*\.\.\.\s*$/
const TAP_PASSES = /^\s*ok \d+\b/
const TAP_OPENS = /^\s*(?:not )?ok \d+\b.*\{\s*$/
const TAP_CLOSES = /^\s*\}\s*$/
const TAP_FRAME = /^\s*(?:# Subtest: |# \w.*\b(?:OK|ok|\d+(?:\.\d+)?ms)$|1\.\.\d+|TAP version \d+|# time=)/

const indentOf = (line: string): number => line.length - line.trimStart().length

/** Tests that pass in the Test Anything Protocol, with the notes below them. */
const tap: LineCleaner = {
  id: 'tap',
  label: 'Passing tests of TAP: node --test, tap, prove',
  commands: ['node', 'tap', 'prove', 'bats', 'npm', 'pg_prove'],
  begin: () => {
    let passed = false
    /** How far the line before is indented. */
    let at = 0
    /** How far the notes that go on are indented. */
    let noted: number | undefined
    let open = 0
    return line => {
      const indent = indentOf(line)
      // Notes that nothing ends are over with the first line that is not indented as they are.
      if (noted !== undefined && (line.trim() === '' || indent >= noted)) {
        if (YAML_END.test(line)) noted = undefined
        return true
      }
      noted = passed && YAML.test(line) && indent > at ? indent : undefined
      passed = TAP_PASSES.test(line)
      at = indent
      if (TAP_OPENS.test(line)) open++
      const closes = open > 0 && TAP_CLOSES.test(line)
      if (closes) open--
      return noted !== undefined || passed || closes || TAP_FRAME.test(line)
    }
  },
}

const SECONDS = String.raw`(?:\s+\(?\d+(?:\.\d+)?\s?m?s\)?)?`

/** Cleaners for programs that run tests. */
export const TEST_CLEANERS: readonly LineCleaner[] = [
  tap,
  cleanerOf(
    'js-tests',
    'Passing tests of Jest, Vitest, Mocha, Playwright and Deno',
    ['jest', 'vitest', 'mocha', 'playwright', 'deno', 'bun', 'ava', 'cypress', 'wdio'],
    [
      new RegExp(String.raw`^\s*[✓✔√]\s.*$`),
      new RegExp(String.raw`^\s*PASS\s+\S+${SECONDS}\s*$`),
      /^\s*RUN\s+v\d/,
      /^.+ \.\.\. ok(?: \(\d+m?s\))?$/,
    ],
  ),
  cleanerOf(
    'pytest',
    'Passing tests of pytest and unittest',
    ['pytest', 'py.test', 'python', 'python3', 'tox', 'nox', 'nose2', 'hatch'],
    [
      /^\S+::\S.* PASSED\s*(?:\[\s*\d+%\])?\s*$/,
      /^\S+\.py [.s]+\s*(?:\[\s*\d+%\])?\s*$/,
      /^[.s]{5,}\s*(?:\[\s*\d+%\])?$/,
      /^(?:platform \w+ --|cachedir:|rootdir:|configfile:|plugins:|testpaths:|collecting \.\.\.)/,
      /^test\w* \([\w.]+\)(?: \.\.\. ok)?$/,
    ],
  ),
  cleanerOf(
    'go-tests',
    'Passing tests and fetched modules of Go',
    ['go', 'gotestsum'],
    [
      /^\s*=== (?:RUN|PAUSE|CONT|NAME)\s/,
      /^\s*--- (?:PASS|SKIP): /,
      /^ok\s+\S+\s+(?:\d+\.\d+s|\(cached\))/,
      /^\?\s+\S+\s+\[no test files\]$/,
      /^go: (?:downloading|finding|extracting|added|upgraded) /,
      /^PASS$/,
    ],
  ),
  cleanerOf(
    'cargo',
    'Passing tests and compiled crates of Cargo',
    ['cargo', 'rustup', 'trunk'],
    [
      /^test .+ \.\.\. ok(?: <[\d.]+s>)?$/,
      /^\s*(?:Compiling|Checking|Fresh|Downloading|Downloaded|Updating|Locking|Adding|Blocking|Documenting) /,
      /^\s*(?:Unpacking|Fetch) /,
      /^\s*(?:Running (?:unittests )?\S+ \(|Doc-tests )/,
      /^running \d+ tests?$/,
      /^info: (?:downloading|installing|latest|syncing|default) /,
    ],
  ),
  cleanerOf(
    'jvm',
    'Fetched packages and finished steps of Maven, Gradle and sbt',
    ['mvn', 'mvnw', 'gradle', 'gradlew', 'sbt', 'ant'],
    [
      /^(?:\[INFO\] )?Download(?:ing|ed)(?: from \S+)?:? /,
      /^\[INFO\]\s*$/,
      /^\[INFO\] -{3,}/,
      /^\[INFO\] (?:Running |Tests run: \d+, Failures: 0, Errors: 0|Copying |skip |Using |Nothing to compile)/,
      /^\[INFO\] (?:Building jar|Changes detected)/,
      /^> Task :\S+(?: (?:UP-TO-DATE|NO-SOURCE|FROM-CACHE))?$/,
      /^Progress \(\d+\): /,
      /^\S+ > \S+(?:\(\))? PASSED$/,
    ],
  ),
]
