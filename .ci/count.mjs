// Prints what a run of tap came to, from its raw output and the exit code: each assertion that failed with what tap
// says of it, and last one line, `N passed, N failed`, with `, N skipped` if any were. Where files that failed ran
// again (`REPORT.again`), that run says what failed, and the first is listed all the same.
import { existsSync, readFileSync } from 'node:fs'

const SHOWN = 60

const [report = '', code = '1'] = process.argv.slice(2)
const depth = line => /^ */.exec(line)[0].length
const failed = line => /^ *not ok\b(?!.*# (?:skip|todo))/i.test(line)

const list = lines => {
  /** The tests around a line, by level, and where each began. */
  const around = []
  let told = -1
  lines.forEach((line, at) => {
    const [, spaces, name] = /^( *)# Subtest: (.*)/.exec(line) ?? []
    if (name) around.splice(spaces.length / 4, Infinity, { name, at })
    if (!failed(line)) return
    const level = depth(line) / 4
    const own = around[level]
    // A test that holds what was told already says nothing new.
    if (own && told > own.at && line.includes(` - ${own.name}`)) return
    told = at
    const end = lines.findIndex((other, later) => later > at && /^ *\.\.\.$|^ *(?:not )?ok\b|^ *1\.\.|^#/.test(other))
    const said = lines.slice(at + 1, Math.min(end, at + SHOWN))
    console.log([[...around.slice(0, level).map(test => test.name), line.trim()].join(' > '), ...said].join('\n'))
  })
}

const read = report => {
  const lines = readFileSync(report, 'utf8').split('\n')
  list(lines)
  // tap writes its own total of assertions last and unindented; a report without one was cut.
  const total = lines.findLast(line => /^# \{ total: \d+.*\}$/.test(line)) ?? ''
  const count = name => Number(new RegExp(`\\b${name}: (\\d+)`).exec(total)?.[1] ?? 0)
  const files = lines.filter(line => depth(line) === 0 && failed(line)).length
  return { held: count('pass'), bad: Math.max(count('fail'), files), skipped: count('skip') + count('todo') }
}

const again = `${report}.again`
const first = read(report)
const { bad } = existsSync(again) ? read(again) : first
const counted = Math.max(bad, Number(code) === 0 && first.held > 0 ? 0 : 1)
const { held, skipped } = first
console.log(`${held} passed, ${counted} failed${skipped ? `, ${skipped} skipped` : ''}`)
