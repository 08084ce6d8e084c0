import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { project } from '../support/browser/page.js'
import { EVERY_CASE } from '../support/lists.js'
import { FEATURES, type Feature } from './features.js'
import { missing, PROGRAMS, versionOf, type RealProgram } from './programs.js'
import { ProgramWorld } from './world.js'

/** What works with a program: `yes`, or `no: ` and the reason. */
interface Column {
  readonly version: string
  readonly cells: { readonly [feature: string]: string }
}

type Table = { readonly [program: string]: Column }

const TABLE = join(project, 'test/fixtures/agent-programs.json')
const PAGE = join(project, 'plugins/agent/PROGRAMS.md')
/** A whole run with this setting writes what it finds into the table. */
const records = process.env['SANDBOX_PROGRAMS'] === 'record'
const MOST_MS = 120_000

export const recordedTable = (): Table => JSON.parse(readFileSync(TABLE, 'utf8')) as Table

export const recordedPage = (): string => readFileSync(PAGE, 'utf8')

const losing = (label: string): string =>
  [
    `${label} names the file of a session by the minute, and empties it when it loads the session in the minute in`,
    'which that began. A conversation that goes on so early after a restart begins a new session, which gets the',
    'record of the old one.',
  ].join('\n')

/** The page that shows the table to people. */
export const pageOf = (table: Table): string => {
  const programs = PROGRAMS.filter(({ id }) => table[id])
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const cell = (program: RealProgram, { id }: Feature) => table[program.id]!.cells[id] ?? 'not tried'
  const reasons = programs.flatMap(program =>
    FEATURES.flatMap(feature => {
      const [, reason] = /^no: (.*)$/s.exec(cell(program, feature)) ?? []
      return reason === undefined ? [] : [`- ${program.label} ${feature.label}: no, ${reason}`]
    }),
  )
  return [
    '# What works with which agent program',
    '',
    'Each program as npm brings it, with the built daemon and a scripted model. `test/programs/` fills this table: a',
    'cell that gets worse fails, and one that gets better is recorded by `npm test -- test/programs` with',
    '`SANDBOX_TESTS=all` and `SANDBOX_PROGRAMS=record` in the environment.',
    '',
    row(['', ...programs.map(({ label }) => label)]),
    row(['---', ...programs.map(() => '---')]),
    row(['package', ...programs.map(each => `\`${each.package}\` ${table[each.id]!.version}`)]),
    row(['command', ...programs.map(({ command }) => `\`${command}\``)]),
    ...FEATURES.map(feature =>
      row([feature.label, ...programs.map(program => (cell(program, feature) === 'yes' ? 'yes' : 'no'))]),
    ),
    ...(reasons.length > 0 ? ['', ...reasons] : []),
    ...programs.flatMap(({ label, losesWithinMinute }) => (losesWithinMinute ? ['', losing(label)] : [])),
    '',
  ].join('\n')
}

/** What became of a feature: `yes`, or what went wrong. */
const found = async (world: ProgramWorld, { holds }: Feature): Promise<string> => {
  const late = Promise.withResolvers<string>()
  const timer = setTimeout(() => late.resolve(`not within ${MOST_MS / 1000} s`), MOST_MS)
  try {
    return await Promise.race([
      holds(world).then(
        () => 'yes',
        (error: Error) => error.message.split('\n')[0]!,
      ),
      late.promise,
    ])
  } finally {
    clearTimeout(timer)
  }
}

const record = (program: RealProgram, cells: { readonly [feature: string]: string }): void => {
  const table = { ...recordedTable(), [program.id]: { version: versionOf(program), cells } }
  const sorted = Object.fromEntries(PROGRAMS.flatMap(({ id }) => (table[id] ? [[id, table[id]]] : [])))
  writeFileSync(TABLE, `${JSON.stringify(sorted, null, 2)}\n`)
  writeFileSync(PAGE, pageOf(sorted))
}

/** Tries a program, and compares what works with the table: everything in a whole run, else what is always tried. */
export const gate = (id: string): void => {
  const program = PROGRAMS.find(each => each.id === id)!
  t.setTimeout(FEATURES.length * MOST_MS)
  t.test(`what works with ${program.label}`, { skip: missing(program) }, async t => {
    const recorded = recordedTable()[id]
    const world = await ProgramWorld.open(t, program)
    const cells: { [feature: string]: string } = {}
    for (const feature of FEATURES.filter(({ always }) => always || EVERY_CASE || records)) {
      const now = await found(world, feature)
      const before = recorded?.cells[feature.id]
      cells[feature.id] = now === 'yes' ? now : before?.startsWith('no: ') ? before : `no: ${now}`
      if (records) t.comment(`${feature.label}: ${now}`)
      else if (now === 'yes') t.equal(now, before, `${feature.label}; one that works now is recorded`)
      else t.match(before, /^no: /, `${feature.label}: ${now}`)
    }
    if (records) record(program, cells)
  })
}
