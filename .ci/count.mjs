// Prints what a run of tap came to, from its raw output and the exit code: `N passed, N failed`, and `, N skipped` if any were.
import { readFileSync } from 'node:fs'

const [report = '', code = '1'] = process.argv.slice(2)
const lines = readFileSync(report, 'utf8').split('\n')
// tap writes its own total of assertions last and unindented; a report without one was cut.
const total = lines.findLast(line => /^# \{ total: \d+.*\}$/.test(line)) ?? ''
const count = name => Number(new RegExp(`\\b${name}: (\\d+)`).exec(total)?.[1] ?? 0)
const files = lines.filter(line => /^not ok(?! .*# (?:skip|todo))/i.test(line)).length
const held = count('pass')
const bad = Math.max(count('fail'), files, Number(code) === 0 && held > 0 ? 0 : 1)
const skipped = count('skip') + count('todo')
console.log(`${held} passed, ${bad} failed${skipped ? `, ${skipped} skipped` : ''}`)
