// Measures a ledger of ten million lines: `node dist/test/bench/usage.js [lines …]`. Only the ratios count.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Ledger, type LedgerDeps } from '../../plugins/usage/ledger.js'
import { utcDayOf, type LedgerLine } from '../../plugins/usage/line.js'
import { rollup } from '../../plugins/usage/rollup.js'
import { UsageIndex } from '../../plugins/usage/usage-index.js'
import { JournalStore } from '../../sdk/node/journal/journal-store.js'
import { asked, inTurns, median, ms, print, quick, ratio, timed, verdict, x } from './measure.js'

const SIZES = asked.length > 0 ? asked.map(Number) : [quick ? 20_000 : 10_000_000]
const PER_JOURNAL = 50_000
const DAYS = 3 * 365
const FIRST = Date.UTC(2024, 0, 1)
const DAY_MS = 86_400_000
const PER_CONVERSATION = 20
const ROUNDS = quick ? 1 : 7
const SINGLE = quick ? 5 : 200
/** The target for ten million lines, in ms. */
const TARGET = 200
const MONTH = { from: '2025-03-01', to: '2025-03-31' }

/** The lines of a sandbox with equal load every day; a conversation keeps its provider, model and persona. */
const lineOf = (n: number, count: number): LedgerLine => {
  const conversation = Math.floor(n / PER_CONVERSATION)
  const at = FIRST + Math.floor((n / count) * DAYS * DAY_MS)
  return {
    at,
    day: utcDayOf(at),
    provider: `provider-${conversation % 3}`,
    account: `person-${conversation % 4}@example.org`,
    model: `model-${conversation % 6}`,
    harness: conversation % 2 ? 'native' : 'vendor-code',
    conversationId: `conversation-${conversation}`,
    persona: `persona-${conversation % 5}`,
    run: `r-${n}`,
    turns: 1 + (n % 3),
    inputTokens: 1_000 + (n % 977),
    outputTokens: n % 313,
    cacheReadTokens: 0,
    cacheCreationTokens: 0,
    costUsd: (n % 1_000) / 10_000,
    costFrom: 'reported',
    durationMs: 4_000,
    unattended: n % 4 === 0,
    outcome: 'ok',
  }
}

const journalsOf = (store: JournalStore): LedgerDeps['journals'] => ({
  append: (name, entries, options) => store.append(`usage/${name}`, entries, options),
  read: (name, after) => store.read(`usage/${name}`, after),
  stat: name => store.stat(`usage/${name}`),
  list: async prefix => (await store.list(`usage/${prefix}`)).map(name => name.slice('usage/'.length)),
})

/** The same sums by one query of a database without other users. */
const bareQuery = (path: string, by: readonly string[]): (() => unknown) => {
  const db = new DatabaseSync(path, { readOnly: true })
  const table = by.includes('conversation') ? 'conversations' : 'days'
  const sums = ['turns', 'input', 'output', 'cache_read', 'cache_creation', 'nanos', 'duration', 'unpriced']
  const query = db.prepare(
    `select ${by.join(', ')}, ${sums.map(sum => `sum(${sum}) ${sum}`).join(', ')} from ${table} `
      + `where day >= ? and day <= ? group by ${by.join(', ')}`,
  )
  return () => query.all(MONTH.from, MONTH.to)
}

const measure = async (count: number): Promise<void> => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'bench-usage-')))
  const store = new JournalStore(join(folder, 'journals'))
  const journals = journalsOf(store)
  const index = new UsageIndex(folder)
  try {
    console.log(`${count} lines over ${DAYS} days`)
    for (let from = 0, journal = 1; from < count; from += PER_JOURNAL, journal++) {
      const lines = Array.from({ length: Math.min(PER_JOURNAL, count - from) }, (_, n) => lineOf(from + n, count))
      await journals.append(`ledger/${String(journal).padStart(6, '0')}`, lines)
    }
    const log = { warn: console.error, error: console.error }
    const open = (): Ledger => new Ledger({ journals, index, log, added: () => {}, recounted: () => {} })
    const ledger = open()
    const made = await timed(() => ledger.current())
    print('the index made anew from the ledger', ms(made), `${Math.round(count / made)} lines per ms`)
    print('the ledger opened, nothing new in it', ms(await timed(() => open().current())))

    for (const by of ['day', 'day,model', 'conversation', 'day,provider,account,model,harness,conversation,persona']) {
      const bare = bareQuery(join(folder, 'usage.sqlite'), by.split(','))
      const rows = (await rollup(index, { ...MONTH, by })).rows.length
      const times = await inTurns(
        { rollup: () => timed(() => rollup(index, { ...MONTH, by })), bare: () => timed(bare) },
        ROUNDS,
      )
      const name = by.split(',').length > 2 ? 'all seven keys' : by
      print(`a month by ${name}, the bare query (baseline)`, ms(median(times.bare)), `${rows} rows`)
      print(`a month by ${name}`, ms(median(times.rollup)), `${x(ratio(times.rollup, times.bare))} of the bare query`)
      verdict(`a month of ${count} lines by ${name}`, median(times.rollup), { most: TARGET, as: ms })
    }
    print('the whole record by day', ms(await timed(() => rollup(index, { by: 'day' }))))
    const singles: number[] = []
    for (let n = 0; n < SINGLE; n++) singles.push(await timed(() => ledger.record(lineOf(count + n, count))))
    print('a turn recorded, flushed', ms(median(singles)))
  } finally {
    index.close()
    await store.shutdown()
    rmSync(folder, { recursive: true, force: true })
  }
}

for (const count of SIZES) await measure(count)
process.exit(0)
