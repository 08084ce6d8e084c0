import { readFileSync } from 'node:fs'
import t from 'tap'
import { OPERATIONS, TAGS, misfits, resolved, type Operation, type Schema } from '../support/schema.js'
import type { Field } from './fields.js'
import { readTables, type ShownCall } from './tables.js'

const tables = readTables()

/** Groups that are not built yet, by the words with which the README names them. */
const PLANNED: { readonly [group: string]: string } = {
  'Offloaded work': 'offload',
}

const operationFor = (call: string): Operation | undefined =>
  OPERATIONS.find(({ call: one }) => one === call.replace('{vendor_a}', '{provider}'))

/** All forms of a schema: the members of its unions. */
const formsOf = (schema: Schema): readonly Schema[] => {
  const shape = resolved(schema)
  return shape.oneOf ? shape.oneOf.flatMap(formsOf) : [shape]
}

const stepInto = (schema: Schema, step: string): readonly Schema[] =>
  formsOf(schema).flatMap(({ properties = {}, items, additionalProperties }) => {
    if (step === '[]') return items ? [items] : []
    const found = properties[step] ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
    return found ? [found] : []
  })

const stepsOf = (path: string): readonly string[] => path.replaceAll('[]', '.[]').split('.').filter(Boolean)

/** What a schema has at a path; empty: nothing. */
const at = (schemas: readonly Schema[], path: string): readonly Schema[] =>
  stepsOf(path).reduce((all, step) => all.flatMap(schema => stepInto(schema, step)), schemas)

const valuesOf = (schema: Schema): readonly string[] =>
  formsOf(schema)
    .flatMap(({ const: one, enum: all = [] }) => [...(one === undefined ? [] : [one]), ...all])
    .map(String)

const typesOf = (schema: Schema): readonly string[] =>
  formsOf(schema).flatMap(({ type, const: one }) => type ?? (one === undefined ? [] : [typeof one]))

const fitsType = (type: string, found: readonly string[]): boolean =>
  type === 'number'
    ? found.every(one => one === 'number' || one === 'integer')
    : type.endsWith('[]')
      ? found.every(one => one === 'array')
      : found.every(one => one === type)

/** How schemas differ from a field of the specification; empty: they do not. */
const differencesOf = (field: Field, schemas: readonly Schema[]): string[] => {
  const found = at(schemas, field.path)
  if (found.length === 0) return [`${field.path} is missing`]
  const { type, values, inAll, of } = field
  const types = found.flatMap(typesOf)
  const has = [...new Set(found.flatMap(one => [...valuesOf(one), ...at([one], '[]').flatMap(valuesOf)]))].sort()
  const wanted = values ?? []
  return [
    ...(type && !fitsType(type, types) ? [`${field.path} is ${[...new Set(types)].join(' or ')}, not ${type}`] : []),
    ...(values
    && !(inAll
      ? wanted.every(value => has.includes(value)) && has.length === inAll
      : String([...wanted].sort()) === String(has))
      ? [`${field.path} has the values ${has.join(', ')}, not ${wanted.join(', ')}${inAll ? ` of ${inAll}` : ''}`]
      : []),
    ...(of && tables.records[of] ? recordDifferences(of, at(found, type?.endsWith('[]') ? '[]' : '')) : []).map(
      one => `${field.path}: ${one}`,
    ),
  ]
}

const RECORDS: { readonly [name: string]: { readonly [path: string]: string } } = {
  persona: { powers: 'powers' },
  settings: { 'rules[]': 'rule' },
  'extension record': { manifest: 'manifest' },
}

const recordDifferences = (name: string, schemas: readonly Schema[]): string[] => [
  ...tables.records[name]!.flatMap(field => differencesOf(field, schemas)),
  ...Object.entries(RECORDS[name] ?? {}).flatMap(([path, inner]) =>
    recordDifferences(inner, at(schemas, path)).map(one => `${path}: ${one}`),
  ),
]

const inputDifferences = ({ input }: ShownCall, { parameters, body }: Operation): string[] =>
  input.flatMap(field => {
    if (field.in !== 'body') {
      const parameter = parameters.find(({ name, in: place }) => name === field.path && place === field.in)
      if (!parameter) return [`${field.path} is missing in the ${field.in}`]
      return [
        ...differencesOf({ ...field, path: '' }, [parameter.schema]).map(one => `${field.path}: ${one}`),
        ...((parameter.required ?? false) !== (field.required ?? false)
          ? [`${field.path} is ${parameter.required ? '' : 'not '}required`]
          : []),
      ]
    }
    const forms = (body ? formsOf(body) : []).filter(
      form => !field.kind || at([form], 'kind').flatMap(valuesOf).includes(field.kind),
    )
    const [last = '', ...before] = stepsOf(field.path).toReversed()
    const holders = before
      .toReversed()
      .reduce((all, step) => all.flatMap(one => stepInto(one, step)), forms)
      .flatMap(formsOf)
    const required = holders.every(({ required = [] }) => required.includes(last))
    return [
      ...differencesOf(field, forms),
      ...(field.path && required !== (field.required ?? false)
        ? [`${field.path} is ${required ? '' : 'not '}required`]
        : []),
    ].map(one => (field.kind ? `${field.kind}: ${one}` : one))
  })

const answerDifferences = ({ answer }: ShownCall, { responses }: Operation): string[] => {
  const schema = responses['200']?.content?.['application/json']?.schema
  return answer.length > 0 && !schema
    ? ['nothing is answered']
    : answer.flatMap(field => differencesOf(field, [schema!]))
}

const answers = (call: string): readonly Schema[] =>
  Object.values(operationFor(call)?.responses['200']?.content ?? {}).map(({ schema }) => schema)
const bodies = (call: string): readonly Schema[] => [operationFor(call)!.body!]

t.test('the groups of the specification are those of the document, and the README names what is missing', t => {
  const groups = tables.groups.map(([name]) => name!)
  t.same(
    groups.filter(name => !TAGS.includes(name)),
    groups.filter(name => name in PLANNED),
  )
  const missing = readFileSync('README.md', 'utf8').split('## What is proven')[1]!
  t.same(
    Object.values(PLANNED).filter(name => !new RegExp(`\\b${name}\\b`).test(missing)),
    [],
  )
  t.same(
    TAGS.filter(name => !groups.includes(name)),
    ['Open routes'],
  )
  t.end()
})

for (const shown of tables.calls.filter(({ section }) => !(section in PLANNED)))
  t.test(shown.call, t => {
    const operation = operationFor(shown.call)
    if (!operation) t.fail('not in the document')
    else {
      t.same(inputDifferences(shown, operation), [], 'input')
      t.same(answerDifferences(shown, operation), [], 'answer')
      t.equal('text/event-stream' in (operation.responses['200']?.content ?? {}), shown.stream, 'stream')
    }
    t.end()
  })

/** Where the document has records that no call of the tables shows as a whole. */
const PLACES: { readonly [record: string]: () => readonly Schema[] } = {
  'control token': () => [
    ...at(answers('GET /system/control/tokens'), 'tokens[]'),
    ...answers('POST /system/control/tokens'),
  ],
  'extension list': () => answers('GET /extensions'),
}
const SHOWN = new Set([
  ...tables.calls.flatMap(({ input, answer }) => [...input, ...answer].flatMap(({ of = [] }) => of)),
  ...Object.values(RECORDS).flatMap(inner => Object.values(inner)),
])

t.test('every record of the specification is in the document', t => {
  for (const name of Object.keys(tables.records).filter(name => name in PLACES || !SHOWN.has(name))) {
    t.ok(PLACES[name], `${name} has its place`)
    t.same(recordDifferences(name, PLACES[name]?.() ?? []), [], name)
  }
  t.end()
})

const STATES: { readonly [resource: string]: readonly [string, string] } = {
  'Derived file': ['GET /workspace/derived', 'state'],
  'Prefetch of the small local model': ['POST /endpoints/local-model/prefetch', 'state'],
  'Extension update health': ['GET /extensions', 'extensions[].health.state'],
  'Extension backend': ['GET /extensions', 'extensions[].backend.state'],
  'Extension source': ['GET /extensions', 'extensions[].source'],
  'Search index freshness': ['GET /workspace/search', 'freshness.state'],
  'Secret status': ['GET /secrets/inventory', 'entries[].status'],
  Issues: ['GET /issues', 'issues[].state'],
  'Gate step outcome in a pipeline': ['POST /workflows/{id}/gate', 'step'],
}

t.test('every set of states is the one of the document', t => {
  for (const { resource, states, more } of tables.states) {
    if (resource === 'Exit link') continue
    const [call = '', path = ''] = STATES[resource] ?? []
    const values = at(answers(call), path).flatMap(valuesOf)
    t.same(
      [states.filter(state => !values.includes(state)), new Set(values).size],
      [[], states.length + more],
      resource,
    )
  }
  t.end()
})

const PARTLY: { readonly [field: string]: readonly [string, string] } = {
  mode: ['GET /workspace/search', 'mode'],
  kind: ['GET /workspace/search', 'groups[].hits[].tags[].kind'],
  bucket: ['GET /workspace/classify', 'classifications[].bucket'],
}

t.test('enumerations that the specification gives in part are complete in the document', t => {
  for (const { path, values = [], inAll } of tables.partly) {
    const [call = '', field = ''] = PARTLY[path] ?? []
    const found = new Set(at(answers(call), field).flatMap(valuesOf))
    t.same([values.filter(value => !found.has(value)), found.size], [[], inAll], path)
  }
  t.end()
})

t.test('scopes, cards, moments and events are those of the specification', t => {
  const valuesAt = (schemas: readonly Schema[], path: string) =>
    [...new Set(at(schemas, path).flatMap(valuesOf))].sort()
  const sorted = (list: readonly string[]) => [...list].sort()
  t.same(valuesAt(bodies('POST /system/control/tokens'), 'scope'), sorted(tables.scopes.map(([scope]) => scope!)))
  t.same(valuesAt(bodies('POST /agent/reply'), 'kind'), sorted(tables.cards))
  t.same(valuesAt(answers('GET /agent/cards'), 'cards[].card.kind'), sorted(tables.cards))
  t.same(valuesAt(bodies('POST /settings'), 'rules[].moment'), sorted(tables.moments))
  const stream = answers('POST /agent/attach').flatMap(formsOf)
  t.same(valuesAt(stream, 'event'), sorted([...new Set(tables.events.map(([event]) => event!.split(' ')[0]!))]))
  const data = stream.flatMap(event => at([event], 'data')).flatMap(formsOf)
  for (const [event = '', fields = ''] of tables.events) {
    const [, kind] = /with kind (\w+)/.exec(event) ?? []
    if (kind === undefined) continue
    const form = data.filter(one => at([one], 'kind').flatMap(valuesOf).includes(kind))
    t.ok(form.length, event)
    for (const [, name = '', type = ''] of fields.matchAll(/(\w+) (string|number)\b/g))
      t.same(differencesOf({ path: name, type }, form), [], event)
  }
  t.end()
})

/** The least and the most that words of a limit allow, in characters, items or as a number. */
const boundsOf = (words: string): { least?: number; most?: number } => {
  const [, from, to] = /^(\d+) to (\d+)/.exec(words) ?? []
  const [, most = to] = /at most (\d+)/.exec(words) ?? []
  const [, least = from] = /^integer at least (\d+)/.exec(words) ?? []
  return { ...(least && { least: Number(least) }), ...(most && { most: Number(most) }) }
}

/** A value of a length, or an integer. */
const valueOf = (shape: Schema, size: number): unknown =>
  shape.type === 'integer'
    ? size
    : shape.type === 'array'
      ? Array.from({ length: Math.max(0, size) }, () =>
          resolved(shape.items!).type === 'string' ? 'a' : { repo: 'root', base: 'main' },
        )
      : 'a'.repeat(Math.max(0, size))

t.test('the limits of fields are those of the specification', t => {
  const body = bodies('POST /agent')
  for (const [limit = '', call = '', words = ''] of tables.limits) {
    const { least, most } = boundsOf(words)
    if (least === undefined && most === undefined) continue
    t.ok(['POST /agent', 'conversations'].includes(call), `${limit}: of a call that is looked at`)
    const [shape = {}] = at(body, limit.split(' ')[0]!).flatMap(formsOf)
    const fits = (size: number) => misfits(shape, valueOf(shape, size)).length === 0
    if (most !== undefined) t.same([fits(most), fits(most + 1)], [true, false], `${limit}: at most ${most}`)
    if (least !== undefined) t.same([fits(least), fits(least - 1)], [true, false], `${limit}: at least ${least}`)
    if (words.includes('each at least')) t.ok(misfits(shape, ['']).length, `${limit}: none is empty`)
  }
  t.end()
})

/** What no control token reaches. */
const TRUST = new RegExp(
  `^/(?:${[
    'secrets|members|accounts|translator/[^/]+|\\{provider\\}|vpn|exit|disks|logs|bundles|usage',
    'activity/export|cli/apply',
    'system/(?:sessions|control|terminals|presence|ws-ticket)',
  ].join('|')})(?:/|$)`,
)
/** Reported by the console, so no read. */
const WRITTEN = 'POST /extensions/usage'

t.test('each scope reaches what the specification says of it', t => {
  const closed = OPERATIONS.filter(({ floor }) => floor !== 'open')
  const callsOf = (fits: (operation: Operation) => boolean) =>
    closed
      .filter(fits)
      .map(({ call }) => call)
      .sort()
  const isTrusted = ({ path }: Operation) => TRUST.test(path)
  const reach = (scope: string) => callsOf(({ scopes }) => scopes.includes(scope))
  t.same(
    callsOf(one => isTrusted(one) && one.scopes.length > 0),
    [],
    'no token reaches the trust surface',
  )
  t.same(
    reach('read'),
    callsOf(one => one.floor === 'viewer' && !isTrusted(one) && one.call !== WRITTEN),
    'read: every read a viewer may make',
  )
  t.same(
    reach('drive'),
    callsOf(one => ['viewer', 'collaborator'].includes(one.floor) && !isTrusted(one)),
    'drive: read, and what a collaborator does',
  )
  const moves = reach('land').filter(call => !reach('drive').includes(call))
  t.same(
    moves.filter(call => !/\/(?:land|auto-land|discard|purge)$|^DELETE \/sessions\//.test(call)),
    [],
    'land: drive, and landing, discarding and purging',
  )
  t.ok(moves.includes('POST /agents/{id}/land'))
  t.same(
    reach('editor').filter(call => !reach('drive').includes(call)),
    [],
    'editor: less than drive',
  )
  for (const call of ['GET /agents', ...moves]) t.notOk(reach('editor').includes(call), `editor: not ${call}`)
  t.end()
})

t.test('what is for owners alone, or for owners and maintainers, is so', t => {
  const floors = (calls: readonly string[]) => calls.map(call => operationFor(call)?.floor)
  t.same(
    new Set(
      floors([
        'POST /system/control/tokens',
        'POST /secrets/reveal',
        'POST /extensions/{id}/remove',
        'POST /shield',
        'POST /areas',
        'DELETE /areas/{id}',
      ]),
    ),
    new Set(['owner']),
  )
  t.same(floors(['POST /extensions/{id}/approve']), ['maintainer'])
  t.end()
})
