import t, { type Test } from 'tap'
import type { RecordedConversation } from '../../../../plugins/agent/conversations/conversations.js'
import { SearchIndex, type Said } from '../../../../plugins/agent/conversations/search-index.js'
import { Search } from '../../../../plugins/agent/conversations/search.js'
import { folderOf } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'

const RUNS = 20
const NEWEST = 10

/** An index that counts the texts that a search reads. */
class CountingIndex extends SearchIndex {
  read = 0;

  override *at(places: readonly number[]): Generator<Said> {
    for (const said of super.at(places)) yield this.#counted(said)
  }

  override *of(id: string): Generator<Said> {
    for (const said of super.of(id)) yield this.#counted(said)
  }

  #counted(said: Said): Said {
    this.read++
    return said
  }
}

/** A search of records with 40 texts each, of which all contain `common`, and the oldest record `rare` at its end. */
const world = (t: Test, records: number) => {
  const index = new CountingIndex(folderOf(t))
  t.teardown(() => index.close())
  const recorded = Array.from({ length: records }, (_, at): RecordedConversation => ({
    id: `c-${at}`,
    title: `T${at}`,
    provider: 'script',
    harness: 'native',
    openedBy: 'ada@example.org',
    createdAt: 1,
    updatedAt: at,
    state: 'live',
  }))
  const find = (id: string) => recorded.find(each => each.id === id)
  const lines = (id: string) =>
    Array.from({ length: RUNS }, (_, run) => ({
      key: `${id}-${run}`,
      rows: [
        { role: 'user' as const, text: `person ${run} says common` },
        {
          role: 'assistant' as const,
          text: `agent ${run} says Common${id === 'c-0' && run === RUNS - 1 ? ' rare' : ''}`,
        },
      ],
    }))
  const search = new Search({
    index,
    conversations: { all: [], recorded, findRecorded: find },
    transcripts: { mark: async id => ({ lines: RUNS, tail: `${id}-${RUNS - 1}` }), lines: async id => lines(id) },
    engine: { live: () => undefined },
    log: { warn: message => t.fail(message) },
    signal: new AbortController().signal,
    patienceMs: 60_000,
  })
  return { index, search, newestFirst: recorded.toReversed() }
}

t.test('a search reads as few texts in many records as in few, and finds the same', async t => {
  const reads: number[][] = []
  for (const records of [20, 100]) {
    const { index, search, newestFirst } = world(t, records)
    const readFor = async (query: string, found: readonly object[], most = NEWEST) => {
      index.read = 0
      const { matches } = await search.find(query, false, newestFirst, most)
      t.match(matches, exactly(...found), `${query} in ${records} records`)
      return index.read
    }
    const newest = newestFirst.slice(0, NEWEST)
    const person = newest.map(({ id }) => ({ id, snippet: { speaker: 'user', text: 'person 0 says common' } }))
    reads.push([
      await readFor('common', person),
      await readFor('says', person),
      await readFor('sa', person),
      await readFor('rare', [{ id: 'c-0', snippet: { speaker: 'agent', text: 'agent 19 says Common rare' } }]),
      await readFor('none', []),
    ])
  }
  t.same(reads, [
    [NEWEST, NEWEST, NEWEST, 1, 0],
    [NEWEST, NEWEST, NEWEST, 1, 0],
  ])
})

t.test("an agent's text is shown only where the person said nothing of it", async t => {
  const { search, newestFirst } = world(t, 2)
  const found = async (query: string, caseSensitive: boolean) =>
    (await search.find(query, caseSensitive, newestFirst)).matches.map(({ snippet }) => snippet?.text)
  t.same(await found('says common', false), ['person 0 says common', 'person 0 says common'])
  t.same(await found('says Common', true), ['agent 0 says Common', 'agent 0 says Common'])
})
