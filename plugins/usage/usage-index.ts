import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import type { ArmSums, BudgetScope, JudgedTurns, MeasuredMetric, MetricArms } from './contract.js'
import { writeFailure } from '../../sdk/node/files/disk.js'
import { inTransaction } from '../../sdk/node/files/transaction.js'
import { nanosOf, usdOf, type LedgerLine } from './line.js'

/** How far the index has come: everything before this journal, and so many lines of it. */
export interface LedgerMark {
  readonly journal: number
  readonly lines: number
}

/** The columns that lines are told apart by; an absent value is an empty text. */
export const KEYS = ['day', 'provider', 'account', 'model', 'harness', 'conversation', 'persona'] as const
export type UsageKey = (typeof KEYS)[number]

/** What is added up. */
export const SUMS = [
  'turns',
  'input',
  'output',
  'cache_read',
  'cache_creation',
  'nanos',
  'duration',
  'unpriced',
] as const

/** A group of lines: the keys that were asked for, and behind them every sum. */
export type SummedLines = readonly (string | number)[]

/** Every sum of some lines. */
export type AllSums = { readonly [sum in (typeof SUMS)[number]]: number }

/** Which lines are summed, and by which keys. */
export interface SumQuery {
  readonly from: string
  readonly to: string
  readonly by: readonly UsageKey[]
  readonly where: { readonly [key in UsageKey]?: string }
}

const VERSION = 2
const FILE = 'usage.sqlite'
/** The lines of so many newest journals are known by their run and part. */
const REMEMBERED = 3

const WHOLE = [...KEYS, 'unattended']
const SHORT = WHOLE.filter(key => key !== 'conversation')
const tableOf = (name: string, keys: readonly string[]) => `
  create table ${name} (
    ${keys.map(key => `${key} ${key === 'unattended' ? 'integer' : 'text'} not null`).join(', ')},
    ${SUMS.map(sum => `${sum} integer not null`).join(', ')},
    primary key (${keys.join(', ')})
  ) without rowid;`
const addTo = (name: string, keys: readonly string[]) =>
  `insert into ${name} values (${[...keys, ...SUMS].map(() => '?').join(', ')}) `
  + `on conflict do update set ${SUMS.map(sum => `${sum} = ${sum} + excluded.${sum}`).join(', ')}`

/** Two queries, because each alone is one look at an end of the table. */
const SPAN = 'select (select min(day) from days) first, (select max(day) from days) last'

const SCHEMA = `
  create table mark (journal integer not null, lines integer not null);
  insert into mark values (0, 0);
  ${tableOf('days', SHORT)}
  create index account_days on days (provider, account);
  ${tableOf('conversations', WHOLE)}
  create index conversation_days on conversations (conversation, day);
  create table runs (
    run text not null, part integer not null, root text not null, nanos integer not null, journal integer not null,
    primary key (run, part)
  ) without rowid;
  create index runs_of on runs (root);
  create index runs_in on runs (journal);
  create table arms (
    day text not null, metric text not null, cohort text not null, arm integer not null, unit text not null,
    units integer not null, sum real not null, squares real not null,
    primary key (metric, cohort, arm, unit, day)
  ) without rowid;
  create table judged (
    day text not null, fast integer not null, routed integer not null, escalated integer not null,
    denied integer not null, turns integer not null, nanos integer not null,
    primary key (day, fast, routed, escalated, denied)
  ) without rowid;
  pragma user_version = ${VERSION};
`

/** The run that a run belongs to: a subagent's begins with that of the turn that started it. */
export const rootOf = (run: string): string => run.split(':', 1)[0]!

/**
 * The sums of the ledger by day. It holds nothing that the ledger does not: lost or damaged, it is made anew.
 *
 * A power cut takes back at most whole steps, and the mark with them, so the sums are always those of the marked lines.
 */
export class UsageIndex {
  readonly #path: string
  #open: DatabaseSync | undefined

  constructor(folder: string) {
    this.#path = join(folder, FILE)
  }

  get mark(): LedgerMark {
    const { journal, lines } = this.#db.prepare('select journal, lines from mark').get() ?? {}
    return { journal: Number(journal), lines: Number(lines) }
  }

  /**
   * Adds lines that follow in the ledger, and moves the mark behind them, in one step; `newest` is the last journal of
   * the ledger, where the lines are of an older one.
   */
  add(lines: readonly LedgerLine[], mark: LedgerMark, newest = mark.journal): void {
    const [days, conversations] = [new Map<string, SQLInputValue[]>(), new Map<string, SQLInputValue[]>()]
    for (const line of lines) {
      const keys = keysOf(line)
      const sums = sumsOf(line)
      collect(conversations, keys, sums)
      collect(days, keys.toSpliced(KEYS.indexOf('conversation'), 1), sums)
    }
    inTransaction(this.#db, db => {
      const [toDays, toConversations] = [db.prepare(addTo('days', SHORT)), db.prepare(addTo('conversations', WHOLE))]
      for (const row of days.values()) toDays.run(...row)
      for (const row of conversations.values()) toConversations.run(...row)
      const remember = db.prepare('insert or ignore into runs values (?, ?, ?, ?, ?)')
      const remembered = mark.journal > newest - REMEMBERED ? lines : []
      for (const { run, part = 1, costUsd } of remembered)
        if (run !== undefined) remember.run(run, part, rootOf(run), nanosOf(costUsd), mark.journal)
      const measure = db.prepare(ADD_MEASURED)
      for (const row of lines.flatMap(measuredRows)) measure.run(...row)
      const judge = db.prepare(ADD_JUDGED)
      for (const line of lines) if (line.tierScore !== undefined) judge.run(...judgedRow(line))
      db.prepare('delete from runs where journal <= ?').run(mark.journal - REMEMBERED)
      db.prepare('update mark set journal = ?, lines = ?').run(mark.journal, mark.lines)
    })
  }

  /** Whether a line of this run and part is among the newest. */
  has(run: string, part: number): boolean {
    return this.#db.prepare('select 1 from runs where run = ? and part = ?').get(run, part) !== undefined
  }

  /** Billionths of a dollar that a run and its subagents have in the newest lines. */
  spentByRun(run: string): number {
    const { nanos } = this.#db.prepare('select sum(nanos) nanos from runs where root = ?').get(rootOf(run)) ?? {}
    return Number(nanos ?? 0)
  }

  /** The groups of the lines that match, in no order. */
  sums({ from, to, by, where }: SumQuery): SummedLines[] {
    const table = by.includes('conversation') || where.conversation !== undefined ? 'conversations' : 'days'
    const given = Object.entries(where)
    const names = by.length > 0 ? `${by.join(', ')}, ` : ''
    const sql =
      `select ${names}${SUMS.map(sum => `sum(${sum}) ${sum}`).join(', ')} from ${table} `
      + `where day >= ? and day <= ?${given.map(([key]) => ` and ${key} = ?`).join('')}`
      + (by.length > 0 ? ` group by ${by.join(', ')}` : ' having count(*) > 0')
    const query = this.#db.prepare(sql)
    // Half the time of objects, and there may be many thousands.
    query.setReturnArrays(true)
    return query.all(from, to, ...given.map(([, value]) => value)) as unknown as SummedLines[]
  }

  /** Billionths of a dollar that were spent in a scope, from one day up to another that does not count. */
  spent(scope: Exclude<BudgetScope, { kind: 'run' }>, from: string, end: string): number {
    const { table, sql, values } = conditionOf(scope)
    const { nanos } =
      this.#db
        .prepare(`select sum(nanos) nanos from ${table} where day >= ? and day < ?${sql}`)
        .get(from, end, ...values) ?? {}
    return Number(nanos ?? 0)
  }

  /** The sums of one account of a provider; zeros where it has no line. */
  account(provider: string, account: string): AllSums {
    const names = SUMS.map(sum => `coalesce(sum(${sum}), 0) ${sum}`).join(', ')
    const sql = `select ${names} from days where provider = ? and account = ?`
    return this.#db.prepare(sql).get(provider, account) as unknown as AllSums
  }

  /** Both arms of a metric in one cohort. */
  arms(metric: MeasuredMetric, cohort: string, from: string, to: string): MetricArms {
    const rows = this.#db.prepare(ARMS).all(metric, cohort, from, to)
    const armOf = (arm: number): ArmSums => {
      const { units = 0, sum = 0, squares = 0 } = rows.find(row => row.arm === arm) ?? {}
      return { units: Number(units), sum: Number(sum), squares: Number(squares) }
    }
    return { on: armOf(1), off: armOf(0) }
  }

  /** The judged turns of some days, by what came of it. */
  judged(from: string, to: string): JudgedTurns[] {
    return this.#db
      .prepare(JUDGED)
      .all(from, to)
      .map(({ fast, routed, escalated, denied, turns, nanos }) => ({
        ...{ alike: Number(turns), costUsd: usdOf(Number(nanos)), tierScore: fast === 1 ? 0 : 1 },
        ...{ tierFast: fast === 1, tierRouted: routed === 1, tierEscalated: escalated === 1, tierDenied: denied === 1 },
      }))
  }

  /** The first day and the last one that have lines. */
  get span(): { readonly first: string; readonly last: string } | undefined {
    const { first, last } = this.#db.prepare(SPAN).get() ?? {}
    return typeof first === 'string' ? { first, last: String(last) } : undefined
  }

  /** Starts over with an empty index. */
  reset(): void {
    this.close()
    for (const end of ['', '-wal', '-shm']) rmSync(this.#path + end, { force: true })
  }

  close(): void {
    this.#open?.close()
    this.#open = undefined
  }

  get #db(): DatabaseSync {
    this.#open ??= this.#opened()
    return this.#open
  }

  #opened(): DatabaseSync {
    const db = new DatabaseSync(this.#path)
    try {
      // A checkpoint is flushed, so that no power cut leaves sums that do not fit the mark.
      db.exec('pragma journal_mode = wal; pragma synchronous = normal')
      const { user_version: version } = db.prepare('pragma user_version').get() ?? {}
      if (version === VERSION) return db
      if (version === 0) {
        db.exec(`begin; ${SCHEMA} commit`)
        return db
      }
    } catch (error) {
      db.close()
      throw writeFailure(error)
    }
    db.close()
    this.reset()
    return this.#opened()
  }
}

const ADD_MEASURED =
  'insert into arms values (?, ?, ?, ?, ?, 1, ?, ?) on conflict do update set '
  + 'units = units + 1, sum = sum + excluded.sum, squares = squares + excluded.squares'
/** Turns are units by themselves; those of a conversation are one unit. */
const ARMS = `
  select arm, sum(units) units, sum(sum) sum, sum(squares) squares from (
    select arm, case when unit = '' then sum(units) else 1 end units, sum(sum) sum,
      case when unit = '' then sum(squares) else sum(sum) * sum(sum) end squares
    from arms where metric = ? and cohort = ? and day >= ? and day <= ? group by arm, unit
  ) group by arm
`

const ADD_JUDGED =
  'insert into judged values (?, ?, ?, ?, ?, 1, ?) on conflict do update set '
  + 'turns = turns + 1, nanos = nanos + excluded.nanos'
const JUDGED =
  'select fast, routed, escalated, denied, sum(turns) turns, sum(nanos) nanos from judged '
  + 'where day >= ? and day <= ? group by fast, routed, escalated, denied'

const judgedRow = ({ day, tierFast, tierRouted, tierEscalated, tierDenied, costUsd }: LedgerLine): SQLInputValue[] => [
  day,
  ...[tierFast, tierRouted, tierEscalated, tierDenied].map(one => (one ? 1 : 0)),
  nanosOf(costUsd),
]

/** What a line adds to the arms of experiments. */
const measuredRows = (line: LedgerLine): SQLInputValue[][] => {
  const { day, conversationId = '', terse, terseCohort, iqSearchArm, iqSearchCohort } = line
  const row = (metric: MeasuredMetric, cohort: string, arm: boolean, unit: string): SQLInputValue[][] => {
    const value = line[metric]
    return value === undefined ? [] : [[day, metric, cohort, arm ? 1 : 0, unit, value, value * value]]
  }
  return [
    ...(terse === undefined || terseCohort === undefined ? [] : row('proseChars', terseCohort, terse, '')),
    ...(iqSearchArm === undefined || iqSearchCohort === undefined || conversationId === ''
      ? []
      : [
          ...row('searchCalls', iqSearchCohort, iqSearchArm, conversationId),
          ...row('openingSearches', iqSearchCohort, iqSearchArm, conversationId),
        ]),
  ]
}

const keysOf = (line: LedgerLine): SQLInputValue[] => [
  line.day,
  line.provider,
  line.account ?? '',
  line.model ?? '',
  line.harness,
  line.conversationId ?? '',
  line.persona ?? '',
  line.unattended ? 1 : 0,
]

const sumsOf = (line: LedgerLine): number[] => [
  line.turns,
  line.inputTokens,
  line.outputTokens,
  line.cacheReadTokens,
  line.cacheCreationTokens,
  nanosOf(line.costUsd),
  line.durationMs,
  line.costFrom === 'unknown' ? line.turns : 0,
]

const collect = (groups: Map<string, SQLInputValue[]>, keys: SQLInputValue[], sums: readonly number[]): void => {
  const name = keys.join('\0')
  const known = groups.get(name)
  if (!known) return void groups.set(name, [...keys, ...sums])
  for (const [at, sum] of sums.entries()) known[keys.length + at] = Number(known[keys.length + at]) + sum
}

const conditionOf = (
  scope: Exclude<BudgetScope, { kind: 'run' }>,
): { table: string; sql: string; values: SQLInputValue[] } => {
  switch (scope.kind) {
    case 'all':
      return { table: 'days', sql: '', values: [] }
    case 'provider':
      return { table: 'days', sql: ' and provider = ?', values: [scope.provider] }
    case 'account':
      return { table: 'days', sql: ' and provider = ? and account = ?', values: [scope.provider, scope.account] }
    case 'persona':
      return { table: 'days', sql: ' and persona = ?', values: [scope.persona] }
    case 'unattended':
      return { table: 'days', sql: ' and unattended = 1', values: [] }
    case 'conversation':
      return { table: 'conversations', sql: ' and conversation = ?', values: [scope.conversationId] }
  }
}
