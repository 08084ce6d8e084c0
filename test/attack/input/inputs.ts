import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { resolved, type Operation, type Schema } from '../../support/schema.js'

/** A raw request. */
export interface Sent {
  readonly method: string
  readonly target: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Buffer
}

/** Values that exist in the sandbox, by the name of the field that takes them. */
export interface Known {
  readonly [field: string]: readonly string[]
}

/** Texts with a special meaning to some layer. */
const TEXTS = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\n',
  '\r\n',
  '\ud800',
  'a\udfffb',
  '\ufeff',
  '\u202e',
  '😀',
  'ÿ',
  '..',
  '../../etc/passwd',
  '/etc/passwd',
  '%2e%2e%2f',
  'C:\\x',
  'NaN',
  'Infinity',
  '-1',
  '1e999',
  '0x10',
  'null',
  'true',
  'undefined',
  '__proto__',
  'constructor',
  'toString',
  '$(id)',
  '`id`',
  '{{secret:X}}',
  '-rf',
  '--help',
  '.git/config',
  '.sandbox/config/settings.json',
  "'; drop table x; --",
  '<script>',
  'a'.repeat(65),
  'x'.repeat(20_001),
]
const NUMBERS = [0, -0, -1, 0.5, 1e308, -1e308, 2 ** 31, 2 ** 32, 2 ** 53, 5e-324, 64, 65, 1001]
const nested = (depth: number): unknown => (depth ? { a: [nested(depth - 1)] } : 1)

/** Any JSON value. */
const junk: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(...TEXTS),
  fc.constantFrom(...NUMBERS),
  fc.constantFrom<unknown>(null, true, false, [], {}, [[]], [null], [{}], nested(8)),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.jsonValue({ maxDepth: 3 }),
)

/** Valid values of a schema; often existing values for the field's name. */
export const fitting = (schema: Schema, known: Known, name = '', depth = 0): fc.Arbitrary<unknown> => {
  const shape = resolved(schema)
  if (shape.oneOf) return fc.oneof(...shape.oneOf.map(one => fitting(one, known, name, depth)))
  if (shape.const !== undefined) return fc.constant(shape.const)
  if (shape.enum) return fc.constantFrom(...shape.enum)
  switch (shape.type) {
    case 'string': {
      const existing = known[name] ?? []
      const text = shape.pattern
        ? fc.stringMatching(new RegExp(shape.pattern)).map(found => found.slice(0, shape.maxLength ?? 64))
        : fc.string({
            unit: 'grapheme',
            minLength: shape.minLength ?? 0,
            maxLength: Math.min(shape.maxLength ?? 30, 30),
          })
      return existing.length
        ? fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...existing) }, { weight: 1, arbitrary: text })
        : text
    }
    case 'integer':
      return fc.integer({ min: shape.minimum ?? 0, max: Math.min(shape.maximum ?? 1000, 1000) })
    case 'number':
      return fc.oneof(
        fc.integer({ min: Math.ceil(shape.minimum ?? 0), max: Math.min(shape.maximum ?? 1000, 1000) }),
        fc.double({ min: shape.minimum ?? 0, max: shape.maximum ?? 1e6, noNaN: true }),
      )
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array':
      return fc.array(fitting(shape.items ?? {}, known, name, depth + 1), {
        minLength: shape.minItems ?? 0,
        maxLength: Math.max(shape.minItems ?? 0, 3),
      })
    case 'object':
      return objects(shape, known, depth)
  }
  return junk
}

const objects = ({ properties = {}, required = [] }: Schema, known: Known, depth: number): fc.Arbitrary<unknown> => {
  const fields = Object.entries(properties).map(([name, inner]) => {
    const value = fitting(inner, known, name, depth + 1)
    // Only few optional fields at a time, because most pairs are refused together.
    return [
      name,
      required.includes(name)
        ? value.map(given => [given])
        : fc.oneof({ weight: 6, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: value.map(given => [given]) }),
    ] as const
  })
  return fc
    .record(Object.fromEntries(fields))
    .map(all => Object.fromEntries(Object.entries(all).flatMap(([name, given]) => given.map(value => [name, value]))))
}

type Path = readonly (string | number)[]

const pathsIn = (value: unknown, at: Path = []): Path[] => [
  at,
  ...(typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([key, inner]) => pathsIn(inner, [...at, Array.isArray(value) ? Number(key) : key]))
    : []),
]

/** A value with one part changed; undefined removes it. */
const changed = (value: unknown, [key, ...rest]: Path, to: unknown): unknown => {
  if (key === undefined) return to
  if (Array.isArray(value))
    return value.flatMap((item, index) =>
      index !== key ? [item] : rest.length === 0 && to === undefined ? [] : [changed(item, rest, to)],
    )
  const entries = Object.entries(value as object).filter(
    ([name]) => name !== key || rest.length > 0 || to !== undefined,
  )
  return Object.fromEntries(entries.map(([name, inner]) => [name, name === key ? changed(inner, rest, to) : inner]))
}

/** A valid value with one part replaced or removed, or with an undeclared field. */
const damaged = (good: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc
    .tuple(
      good,
      fc.nat(),
      fc.constantFrom('replace', 'replace', 'remove', 'add'),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }),
      junk,
    )
    .map(([value, pick, how, name, to]) => {
      const paths = pathsIn(value)
      const path = paths[pick % paths.length]!
      if (how === 'add') return { ...(value as object), [name]: to }
      return changed(value, path, how === 'remove' && path.length ? undefined : to)
    })

/** Functions that corrupt the text of a body. */
const SPOILT: { readonly [what: string]: (text: string) => string | Buffer } = {
  cut: text => text.slice(0, -1),
  half: text => text.slice(0, text.length >> 1),
  trailing: text => `${text}x`,
  twice: text => text + text,
  'a key twice': text => text.replace(/^\{("(?:[^"\\]|\\.)*"):/, '{$1:null,$1:'),
  'a key twice, the last wrong': text => text.replace(/^\{("(?:[^"\\]|\\.)*"):(.*)\}$/s, '{$1:$2,$1:[]}'),
  'a byte order mark': text => Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(text)]),
  'UTF-16': text => Buffer.from(text, 'utf16le'),
  'a byte that is no UTF-8': text =>
    Buffer.concat([Buffer.from(text.slice(0, -1)), Buffer.from([0xff]), Buffer.from(text.slice(-1))]),
  'a lone surrogate in bytes': text =>
    Buffer.concat([Buffer.from(text.slice(0, -1)), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from(text.slice(-1))]),
  NaN: text => text.replace(/:[^,}]*/, ':NaN'),
  'a huge number': text => text.replace(/:[^,}]*/, ':1e999'),
  'a number of 5,000 digits': text => text.replace(/:[^,}]*/, `:${'9'.repeat(5000)}`),
  'a hexadecimal number': text => text.replace(/:[^,}]*/, ':0x10'),
  'a single quote': text => text.replaceAll('"', "'"),
  'a comment': text => `/* */${text}`,
  'a closed key': text => text.replace(/^\{/, '{"__proto__":{"x":1},'),
  'a closed key, escaped': text => text.replace(/^\{/, '{"\\u005f_proto__":{"x":1},'),
  '65 levels': text => text.replace(/\}$/, `${text.length > 2 ? ',' : ''}"deep":${'['.repeat(65)}${']'.repeat(65)}}`),
  '64 levels': text => text.replace(/\}$/, `${text.length > 2 ? ',' : ''}"deep":${'['.repeat(63)}${']'.repeat(63)}}`),
  'a list': text => `[${text}]`,
  'a text': text => JSON.stringify(text),
  null: () => 'null',
  compressed: text => gzipSync(text),
}

const bodies = (schema: Schema | undefined, known: Known): fc.Arbitrary<Buffer> => {
  const good = fitting(schema ?? { type: 'object', properties: {} }, known)
  const text = (value: unknown): string => JSON.stringify(value) ?? ''
  const spoilt = fc.tuple(good, fc.constantFrom(...Object.values(SPOILT))).map(([value, spoil]) => spoil(text(value)))
  return fc
    .oneof(
      { weight: 4, arbitrary: good.map(text) },
      { weight: 8, arbitrary: damaged(good).map(text) },
      { weight: 4, arbitrary: spoilt },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }).map(bytes => Buffer.from(bytes)) },
    )
    .map(body => Buffer.from(body as string))
}

/** Replacements of a path segment, as raw text of the target. */
const SEGMENTS = [
  '..',
  '.',
  '',
  '%',
  '%zz',
  '%2',
  '%2e%2e',
  '%2E',
  '%00',
  'a%00b',
  '%2f',
  '%2fetc%2fpasswd',
  '%5c',
  '%c0%af',
  '%ed%a0%80',
  '%ff',
  '%u0041',
  '*',
  ';a=b',
  'a;b',
  '\u00ff',
  '__proto__',
  'constructor',
  'root',
  '%252e%252e',
  '~',
  'a'.repeat(64),
  'a'.repeat(65),
  'x'.repeat(4000),
  'x'.repeat(17_000),
]
/** Replacements of a query, as raw text of the target. */
const QUERIES = [
  '%',
  '%zz=1',
  '&&&',
  '=',
  '=1',
  'a',
  '__proto__=1',
  'constructor[x]=1',
  'limit=1&limit=1',
  'limit=',
  'limit=1e3',
  'limit=-1',
  'limit=NaN',
  'limit=1.5',
  'limit=99999999999999999999',
  'query=',
  'query=%00',
  'query=%ff',
  'query=a&query=b',
  'caseSensitive=maybe',
  `query=${'x'.repeat(12_000)}`,
  'before=abc',
  'after=..%2f',
  '?',
  '#x',
  'a=b;c=d',
]

/** Additional headers; each may be sent twice. */
const HEADERS: readonly (readonly [string, string])[] = [
  ['content-encoding', 'gzip'],
  ['content-encoding', 'br'],
  ['content-encoding', 'x'],
  ['transfer-encoding', 'chunked'],
  ['transfer-encoding', 'gzip, chunked'],
  ['transfer-encoding', 'x'],
  ['content-length', '0'],
  ['content-length', '-1'],
  ['content-length', '1e3'],
  ['content-length', '99999999999999999999'],
  ['expect', '100-continue'],
  ['expect', 'wonders'],
  ['upgrade', 'websocket'],
  ['connection', 'upgrade'],
  ['connection', 'keep-alive'],
  ['if-match', '*'],
  ['if-match', '"x"'],
  ['if-match', 'x,'.repeat(500)],
  ['if-none-match', '*'],
  ['if-none-match', 'W/'],
  ['last-event-id', '\u00ff'],
  ['last-event-id', 'x'.repeat(5000)],
  ['last-event-id', '-1'],
  ['last-event-id', '00000000-999999999999999'],
  ['range', 'bytes=0-'],
  ['range', 'lines=-1'],
  ['accept', 'text/html'],
  ['accept', ''],
  ['accept-encoding', 'gzip;q=x'],
  ['cookie', 'a=b; __proto__=c'],
  ['x-http-method-override', 'DELETE'],
  ['x-forwarded-for', '1.2.3.4, ..'],
  ['forwarded', 'for=_x'],
  ['user-agent', '\u00e9'.repeat(300)],
  ['origin', 'null'],
  ['origin', 'file://'],
  ['sec-fetch-site', 'cross-site'],
  ['x-sandbox-control', ''],
  ['x-sandbox-control', 'a, b'],
  ['x-sandbox-control', 'sbc_x'],
  ['x-sandbox-turn', 'x'],
  ['authorization', 'Basic eDp5'],
  ['authorization', 'Bearer'],
  ['idempotency-key', 'x'.repeat(500)],
  ['a'.repeat(300), 'b'],
  ['x', 'y'.repeat(17_000)],
  ['x-empty', ''],
  ['x\u0001', 'y'],
  ['x y', 'z'],
  ['x', 'a\u0000b'],
  ['x', 'a\nb'],
  ['', 'x'],
]
const TYPES = [
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data',
  'multipart/form-data; boundary=x',
  'application/json; charset=utf-16',
  'application/json;charset=x',
  'APPLICATION/JSON',
  'application/json, text/plain',
  'application/jsonp',
  'application/vnd.api+json',
  '',
  ';',
  'x'.repeat(9000),
]

const rarely = <T>(most: fc.Arbitrary<T>, seldom: fc.Arbitrary<T>, weight = 5): fc.Arbitrary<T> =>
  fc.oneof({ weight, arbitrary: most }, { weight: 1, arbitrary: seldom })

/** Requests to one call, most of them nearly valid. */
export const requestsOf = ({ method, path, parameters, body }: Operation, known: Known): fc.Arbitrary<Sent> => {
  const segment = (schema: Schema, name: string) =>
    rarely(
      fitting(schema, known, name).map(value => encodeURIComponent(wellFormed(String(value)))),
      fc.oneof(
        fc.constantFrom(...SEGMENTS),
        fc.constantFrom(...TEXTS).map(text => encodeURIComponent(wellFormed(text))),
      ),
    )
  const paths = fc
    .tuple(
      ...path.split('/').map(part => {
        const name = /^\{(\w+)\}$/.exec(part)?.[1]
        const schema = parameters.find(one => one.in === 'path' && one.name === name)?.schema
        return schema
          ? segment(schema, name!)
          : rarely(fc.constant(part), fc.constantFrom(part.toUpperCase(), `${part}%20`, `${part}.`), 60)
      }),
    )
    .map(parts => parts.join('/'))
  const pairs = fc
    .tuple(
      ...parameters
        .filter(one => one.in === 'query')
        .map(({ name, required, schema }) => {
          const value = rarely(fitting(schema, known, name), junk, 2).map(given => [
            `${name}=${encodeURIComponent(wellFormed(textOf(given)))}`,
          ])
          return required ? rarely(value, fc.constant([])) : fc.oneof(value, fc.constant([]))
        }),
    )
    .map(all => all.flat().join('&'))
  const queries = rarely(
    pairs,
    fc.tuple(pairs, fc.constantFrom(...QUERIES)).map(both => both.filter(Boolean).join('&')),
    parameters.some(one => one.in === 'query') ? 2 : 8,
  )
  const types = rarely(
    fc.constant<readonly string[]>(['application/json']),
    fc.oneof(fc.constant([]), fc.subarray(TYPES, { minLength: 1, maxLength: 2 })),
    10,
  )
  const extra = rarely(
    fc.constant<readonly (readonly [string, string])[]>([]),
    fc.array(fc.constantFrom(...HEADERS), { minLength: 1, maxLength: 3 }),
    3,
  )
  const empty = fc.constant(Buffer.alloc(0))
  const content =
    method === 'GET'
      ? rarely(empty, bodies(undefined, known), 20)
      : body
        ? bodies(body, known)
        : rarely(empty, bodies(undefined, known), 2)
  return fc
    .record({ at: paths, query: queries, types, extra, content })
    .map(({ at, query, types: named, extra: more, content: bytes }) => ({
      method,
      target: query ? `${at}?${query}` : at,
      body: bytes,
      headers: [
        ...(bytes.length ? named.map(type => ['content-type', type] as const) : []),
        ...(bytes.length && !more.some(([name]) => name === 'transfer-encoding' || name === 'content-length')
          ? [['content-length', String(bytes.length)] as const]
          : []),
        ...more,
      ],
    }))
}

const textOf = (value: unknown): string => (typeof value === 'object' ? JSON.stringify(value) : String(value))
const wellFormed = (text: string): string => text.toWellFormed()
