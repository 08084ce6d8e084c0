// Measures search and pages of past sessions: `node dist/test/bench/sessions.js [MiB of text …]`.
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { openStore } from '../../kernel/storage/store.js'
import type { Conversation } from '../../plugins/agent/contract.js'
import { JournalStore } from '../../sdk/node/journal/journal-store.js'
import { makeWorkspace, spawnDaemon } from '../support/daemon.js'
import { asked, median, ms, print, quick, timed, verdict } from './measure.js'

const MIB = 1024 * 1024
const SIZES = asked.length > 0 ? asked.map(Number) : [quick ? 2 : 500]
const RECORDS = quick ? 40 : 2_000
const ROUNDS = quick ? 1 : 9
/** The targets for 2,000 records and 500 MB of text, in ms. */
const MOST = { search: 200, page: 100 }
const VOCABULARY = 20_000
const WORDS = 400
const MARKED = 100

/** A generator of numbers from 0 to 1 that is the same in each run. */
const dice = (seed: number) => () => {
  seed = (seed * 1_664_525 + 1_013_904_223) >>> 0
  return seed / 2 ** 32
}

const SYLLABLES = [
  'ba',
  'che',
  'do',
  'fin',
  'gra',
  'hel',
  'in',
  'ka',
  'lo',
  'mer',
  'no',
  'per',
  'ri',
  'sto',
  'tu',
  'wa',
]
const wordOf = (n: number): string => {
  let [left, word] = [n, '']
  do word += SYLLABLES[left % SYLLABLES.length]!
  while ((left = Math.floor(left / SYLLABLES.length)) > 0)
  return word
}

/** A text in which a word is as frequent as its rank says, as in a language. */
const textOf = (roll: () => number): string =>
  Array.from({ length: WORDS }, () => wordOf(Math.floor(VOCABULARY ** roll()) - 1)).join(' ')

/** The data folder of a daemon that had these conversations. */
const seed = async (data: string, size: number): Promise<void> => {
  mkdirSync(data, { recursive: true, mode: 0o700 })
  const store = openStore(`sqlite://${join(data, 'store.sqlite')}`)
  const journals = new JournalStore(join(data, 'journals'))
  const roll = dice(1)
  const now = Date.now() - 3_600_000
  for (let at = 0; at < RECORDS; at++) {
    const id = `c-${at}`
    const conversation: Conversation = {
      id,
      title: `conversation ${at}`,
      titleBy: 'prompt',
      createdAt: now,
      updatedAt: now + at,
      openedBy: 'ada@example.org',
      lastBy: 'ada@example.org',
      provider: 'script',
      harness: 'native',
      lastEnd: 'completed',
      repos: [],
      totals: { turns: 1, toolUses: 0, helpers: 0, costUsd: 0, inputTokens: 0, outputTokens: 0 },
    }
    await store.of('agent').set(`c/${id}`, conversation)
    const lines: object[] = []
    for (let bytes = 0, run = 0; bytes < (size * MIB) / RECORDS; run++) {
      const marked = at % MARKED === 0 && run === 1 ? ' the heron stands here' : ''
      const rows = [
        { role: 'user', text: textOf(roll).slice(0, 300) + marked },
        { role: 'assistant', text: textOf(roll) },
      ]
      lines.push({ run: `r-${at}-${run}`, rows })
      bytes += rows.reduce((sum, { text }) => sum + text.length, 0)
    }
    await journals.append(`agent/transcripts/${id}`, lines)
  }
  await Promise.all([store.close(), journals.shutdown()])
}

const measure = async (size: number): Promise<void> => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'bench-sessions-')))
  const endings: (() => unknown)[] = []
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  try {
    console.log(`${RECORDS} records, ${size} MiB of text`)
    makeWorkspace(where.workspace)
    await seed(where.data, size)
    const { client } = await spawnDaemon({ teardown: ending => void endings.push(ending as () => unknown) }, where)
    const list = (input: { query?: string; before?: string }) => client.call('GET /sessions', { limit: 50, ...input })
    print('a search before anything is indexed', ms(await timed(() => list({ query: 'heron' }))))
    const indexed = await timed(async () => {
      while ((await list({ query: 'heron' })).indexing) await setTimeout(100)
    })
    print('until everything is indexed', `${(indexed / 1000).toFixed(1)} s`)
    const searched = async (what: string, query: string, least: number) => {
      const times: number[] = []
      let found = 0
      for (let round = 0; round < ROUNDS; round++)
        times.push(await timed(async () => (found = (await list({ query })).sessions.length)))
      if (found < least) throw new Error(`${query}: expected ${least} sessions, found ${found}`)
      print(`a search of ${what}, best`, ms(Math.min(...times)))
      verdict(`past sessions: a search of ${what} in ${size} MiB`, median(times), { most: MOST.search, as: ms })
    }
    await searched('a word in 1 % of the records', 'heron', Math.min(50, RECORDS / MARKED))
    await searched('three words in 1 % of the records', 'the heron stands', Math.min(50, RECORDS / MARKED))
    await searched('a word in no record', 'pelican', 0)
    await searched('a word in many records', wordOf(300), 1)
    await searched('the most frequent word', `${wordOf(0)} `, 50 > RECORDS ? RECORDS : 40)
    const first: number[] = []
    let before: string | undefined
    for (let page = 0; page < ROUNDS; page++)
      first.push(
        await timed(async () => {
          before = (await list(before === undefined ? {} : { before })).next
        }),
      )
    print('the first page', ms(first[0]!))
    verdict('a page of 50 sessions, each for the first time', median(first), {
      most: MOST.page,
      as: ms,
    })
    const again = await timed(() => list({}))
    print('the first page once more', ms(again))
  } finally {
    for (const ending of endings) await ending()
    rmSync(folder, { recursive: true, force: true })
  }
}

for (const size of SIZES) await measure(size)
process.exit(0)
