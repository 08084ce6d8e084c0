import t from 'tap'
import { exactly } from '../../../support/lists.js'
import { refuse, type Context } from '../../../../sdk/index.js'
import { BEGINNING, ChainCheck, hashOfEntry } from '../../../../sdk/node/record/chain.js'
import { record } from '../../../../sdk/node/record/record.js'

interface Entry {
  readonly seq: number
  readonly prev: string
  readonly hash: string
  readonly type: string
}

/** An entry with its own valid hash, whatever the previous entry. */
const sealed = (entry: Omit<Entry, 'hash'>): Entry => ({ ...entry, hash: hashOfEntry({ ...entry, hash: '' } as never) })

const chain = (length: number): Entry[] => {
  const entries: Entry[] = []
  for (let seq = 1; seq <= length; seq++)
    entries.push(sealed({ seq, prev: entries.at(-1)?.hash ?? BEGINNING, type: `did ${seq}` }))
  return entries
}

/** The position at which a chain is broken. */
const brokenAt = (entries: readonly Entry[]): number | undefined => {
  const check = new ChainCheck({ seq: 0, hash: BEGINNING })
  for (const entry of entries) check.read(JSON.stringify(entry))
  check.end()
  return check.brokenAt
}

t.test('an unchanged chain is valid, and every change of an entry breaks it', t => {
  const whole = chain(6)
  t.equal(brokenAt(whole), undefined)
  const third = whole[2]!
  const changes: [what: string, entries: readonly Entry[], at: number][] = [
    ['its words are others', whole.with(2, { ...third, type: 'did nothing' }), 3],
    ['its words are others, and its hash fits them', whole.with(2, sealed({ ...third, type: 'did nothing' })), 4],
    ['it follows another entry, and its hash fits that', whole.with(2, sealed({ ...third, prev: whole[0]!.hash })), 3],
    ['its number is another, and its hash fits that', whole.with(2, sealed({ ...third, seq: 4 })), 3],
    ['it is gone', whole.toSpliced(2, 1), 3],
    [
      'it is removed, and the later ones are renumbered',
      [...whole.slice(0, 2), ...whole.slice(3).map(entry => sealed({ ...entry, seq: entry.seq - 1 }))],
      3,
    ],
    ['it is there twice', whole.toSpliced(2, 0, third), 4],
    ["it and the next one are in each other's place", [...whole.slice(0, 2), whole[3]!, third, ...whole.slice(4)], 3],
    ["the last one's number is one that fits nothing", whole.with(5, sealed({ ...whole[5]!, seq: 7 })), 6],
  ]
  for (const [what, entries, at] of changes) t.equal(brokenAt(entries), at, what)
  t.end()
})

t.test('an action recorded with a copy of its context is recorded with its actor', async t => {
  const context: Context = {
    caller: { kind: 'session', actor: 'ann@example.org', role: 'owner' },
    signal: new AbortController().signal,
    trusted: true,
  }
  const told: object[] = []
  const failures: unknown[] = []
  const host = {
    serves: async () => true,
    call: async (_: string, input: object, { as }: { as?: Context } = {}) => {
      // The kernel knows a caller by the context itself.
      if (as && as !== context) refuse('forbidden', 'activity is not serving the caller it names')
      told.push({ ...input, ...(as && { as: as.caller.actor }) })
    },
    log: { error: (...failure: unknown[]) => failures.push(failure) },
  }
  for (const given of [context, { ...context }, undefined])
    await record(host as never, { type: 'skill.saved', outcome: 'ok' }, given)
  const expected = exactly(
    { as: 'ann@example.org' },
    { actor: 'ann@example.org', type: 'skill.saved' },
    { type: 'skill.saved' },
  )
  t.match(told, expected)
  t.same(failures, [])
})
