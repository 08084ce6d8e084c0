import fc from 'fast-check'
import t from 'tap'
import { entriesIn, type DeployEntry } from '../../../../sdk/node/deploy/entries.js'
import { withEntry, withoutEntry } from '../../../../sdk/node/deploy/edits.js'

const COMMENTED = `// Machines of the house.
{
  "version": 3, /* by hand */
  "inventory": [
    // The one in the cellar.
    {
      "kind": "backend", "provider": "host", "name": "cellar", // never sleeps
      "values": {
        "address": "10.0.0.2", // fixed in the router
        "user": "deploy",
      },
      "note": "ask Ada",
    }, // oldest
    { "kind": "app", "name": "shop", "values": { "source": "shop" }, "on": "cellar", "expose": "" }
    // nothing below
  ],
  "else": [1,2,   3]
}
`
const CELLAR: DeployEntry = {
  kind: 'backend',
  provider: 'host',
  name: 'cellar',
  values: { address: '10.0.0.2', user: 'deploy' },
}
const ATTIC: DeployEntry = {
  kind: 'backend',
  provider: 'host',
  name: 'attic',
  values: { address: '10.0.0.3', port: 22 },
}

t.test('an entry that is there word for word changes nothing', async t => {
  t.equal(withEntry(COMMENTED, CELLAR), COMMENTED)
})

t.test('only the value that differs is written', async t => {
  const edited = withEntry(COMMENTED, { ...CELLAR, values: { ...CELLAR.values, address: '10.0.0.9' } })
  t.equal(edited, COMMENTED.replace('10.0.0.2', '10.0.0.9'))
})

t.test('an option is added and taken out, and comments stay', async t => {
  const added = withEntry(COMMENTED, { ...CELLAR, values: { ...CELLAR.values, port: 2222 } })
  t.equal(added, COMMENTED.replace('"user": "deploy",', '"user": "deploy",\n        "port": 2222,'))
  t.equal(withEntry(added, CELLAR), COMMENTED)
})

t.test('a new entry stands behind the last comment of the list, in the form of the last entry', async t => {
  const edited = withEntry(COMMENTED, ATTIC)
  const line =
    '    { "kind": "backend", "provider": "host", "name": "attic", "values": { "address": "10.0.0.3", "port": 22 } }\n'
  t.equal(
    edited,
    COMMENTED.replace('"expose": "" }\n', '"expose": "" },\n').replace(
      '    // nothing below\n',
      `    // nothing below\n${line}`,
    ),
  )
})

t.test('an entry goes with its line, and the comments around it stay', async t => {
  const edited = withoutEntry(COMMENTED, 'shop')
  t.notMatch(edited, 'shop')
  for (const comment of ['// Machines of the house.', '/* by hand */', '// never sleeps', '// nothing below'])
    t.match(edited, comment)
  t.equal(withoutEntry(COMMENTED, 'nobody'), COMMENTED)
})

t.test('an option with the name of something that every object has goes like any other', async t => {
  const entry: DeployEntry = { ...CELLAR, values: { toString: 1, address: '10.0.0.2' } as DeployEntry['values'] }
  const text = JSON.stringify({ inventory: [entry] })
  t.same(entriesIn(withEntry(text, ATTIC)), [entry, ATTIC])
  t.same(entriesIn(withEntry(text, CELLAR)), [CELLAR])
})

t.test('a very long line of blanks holds nothing up', async t => {
  const [first, second] = [CELLAR, ATTIC].map(entry => JSON.stringify(entry))
  const text = `{ "inventory": [${' '.repeat(400_000)}${first}, ${second}] }`
  const began = performance.now()
  t.equal(withoutEntry(text, 'attic'), text.replace(`, ${second}`, ''))
  t.ok(performance.now() - began < 5000)
})

t.test('an entry becomes one of another kind in place', async t => {
  const service: DeployEntry = { kind: 'service', service: 'redis', name: 'shop', values: {}, on: 'cellar', expose: '' }
  t.same(entriesIn(withEntry(COMMENTED, service)), [CELLAR, service])
})

for (const [name, text] of Object.entries({
  'no file': undefined,
  'an empty file': ' \n',
  'an empty object': '{}',
  'an object with a comment': '{ // mine\n}\n',
  'an empty list on one line': '{"inventory":[]}',
  'a list with a comment alone': '{\r\n\t"inventory": [\r\n\t\t// none\r\n\t]\r\n}\r\n',
  'one line of everything': '{"a":1,"inventory":[{"kind":"backend","provider":"host","name":"x","values":{}}],"b":2}',
  'commas in front':
    '{ "a": 1\n, "inventory": [\n  {"kind":"backend","provider":"host","name":"x","values":{}}\n  ]\n, "b": 2 }',
  'a mark at the beginning': '\ufeff{"inventory": [ ]}',
}))
  t.test(`an entry is added to ${name} and taken out again`, async t => {
    const before = entriesIn(text ?? '')
    const added = withEntry(text, ATTIC)
    t.same(entriesIn(added), [...before, ATTIC])
    t.same(entriesIn(withEntry(added, CELLAR)), [...before, ATTIC, CELLAR])
    t.same(entriesIn(withoutEntry(added, 'attic')), before)
    for (const word of text?.match(/"[ab]"|\/\/ \w+/g) ?? []) t.match(added, word)
    t.equal(added.includes('\r\n'), text?.includes('\r\n') ?? false, 'line ends stay')
  })

t.test('what is not JSON with comments is refused with its line and column', async t => {
  for (const [text, place] of Object.entries({
    '{\n  "inventory": [}\n': 'line 2, column 17: expected a value',
    '{ "inventory": [] } x': 'line 1, column 21: expected the end of the file',
    '{ "inventory": [] /* open': 'line 1, column 19: expected the end of this comment',
    '{ "inventory": [01] }': 'line 1, column 17: expected a value',
    '{ "a": "\n" }': 'line 1, column 8: expected a text in quotes on one line',
    '{ "a": 1, "a": 2 }': 'line 1, column 11: expected each key once, found "a" again',
    '{ "__proto__": 1 }': 'line 1, column 3: expected another key than __proto__',
    '{ "inventory": {} }': 'line 1, column 16: expected inventory to be a list of entries',
    '{ "inventory": [{ "kind": "moon", "name": "a" }] }': 'line 1, column 27: expected kind to be one of',
    '[]': 'line 1, column 1: expected an object',
    '{ "inventory": [{ "kind": "backend", "provider": "host", "name": "a", "values": { "b": 1e999 } }] }':
      'line 1, column 88: expected a text of at most 4096 characters or a number',
    [`{ "inventory": [{ "kind": "backend", "provider": "${'h'.repeat(61)}", "name": "a" }] }`]:
      'line 1, column 50: expected provider to have at most 60 characters',
    [`{ "a": ${'['.repeat(200)}`]: 'expected at most 64 levels',
    [`{ "a": [${'1,'.repeat(50_000)}] }`]: 'expected at most 50000 values',
  }))
    t.throws(() => entriesIn(text), { message: new RegExp(place.replace(/[{}[\]().]/g, '\\$&')) }, text.slice(0, 40))
})

/** A text of the configuration, written in one of the ways in which people write JSON with comments. */
const written = (entries: readonly DeployEntry[], noise: () => string, trailing: boolean): string => {
  const list = (parts: string[], open: string, close: string): string => {
    const each = parts.map((part, at) => {
      const comma = at < parts.length - 1 || trailing ? ',' : ''
      return `${noise()}${part}${noise()}${comma}`
    })
    return `${open}${each.join('')}${noise()}${close}`
  }
  const value = (of: unknown): string =>
    Array.isArray(of)
      ? list(of.map(value), '[', ']')
      : typeof of === 'object' && of !== null
        ? list(
            Object.entries(of).map(([key, each]) => `${JSON.stringify(key)}${noise()}:${noise()}${value(each)}`),
            '{',
            '}',
          )
        : JSON.stringify(of)
  return `${noise()}${value({ before: [1, { x: 'y' }], inventory: entries, after: null })}${noise()}`
}

const NAMES = ['a', 'b', 'c', 'd']
const NOISE = ['', ' ', '\n', '\n    ', ' // "}],{\n', '/* , ] */', '\n\n  // one\n  ', '\t']
const valuesOf = fc.dictionary(
  fc.constantFrom('address', 'user', 'x"y', 'z'),
  fc.oneof(fc.string({ maxLength: 8 }), fc.integer()),
  { maxKeys: 3, noNullPrototype: true },
)
const PLAIN = { noNullPrototype: true } as const
const entryOf = (name: string): fc.Arbitrary<DeployEntry> =>
  fc.oneof(
    fc.record(
      {
        kind: fc.constant('backend' as const),
        provider: fc.constant('host'),
        name: fc.constant(name),
        values: valuesOf,
      },
      PLAIN,
    ),
    fc.record(
      {
        kind: fc.constant('service' as const),
        service: fc.constantFrom('redis', 'postgres'),
        name: fc.constant(name),
        values: valuesOf,
        on: fc.constantFrom(...NAMES),
        expose: fc.constantFrom('', 'a'),
      },
      PLAIN,
    ),
    fc.record(
      {
        kind: fc.constant('app' as const),
        name: fc.constant(name),
        values: valuesOf,
        on: fc.constantFrom(...NAMES),
        expose: fc.constant(''),
      },
      PLAIN,
    ),
  )

t.test('whatever a file looks like, an edit changes its entry, and no comment or other key is lost', async t => {
  const count = Number(process.env.SANDBOX_PROPERTY_RUNS ?? 300)
  await fc.assert(
    fc.property(
      fc.subarray(NAMES).chain(names => fc.tuple(...names.map(entryOf))),
      fc.constantFrom(...NAMES).chain(entryOf),
      fc.infiniteStream(fc.constantFrom(...NOISE)),
      fc.boolean(),
      (entries, entry, noise, trailing) => {
        const text = written(entries, () => noise.next().value, trailing)
        const at = entries.findIndex(({ name }) => name === entry.name)
        const expected = at < 0 ? [...entries, entry] : entries.with(at, entry)
        const edited = withEntry(text, entry)
        t.same(entriesIn(edited), expected)
        const others = entries.filter(({ name }) => name !== entry.name)
        t.same(entriesIn(withoutEntry(edited, entry.name)), others)
        for (const [kept, from] of [['"before"', text] as const, ['"after"', text] as const])
          if (from.includes(kept) !== edited.includes(kept)) t.fail(`${kept} was lost`)
        if (at < 0 && (edited.match(/\/\//g)?.length ?? 0) < (text.match(/\/\//g)?.length ?? 0))
          t.fail('a comment was lost')
      },
    ),
    { numRuns: Math.min(count, 5000), seed: 7 },
  )
})
