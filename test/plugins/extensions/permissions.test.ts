import t from 'tap'
import fc from 'fast-check'
import { permissionExamples } from '../../../openapi/permissions-page.js'
import { parseExtension } from '../../../plugins/extensions/manifest/parse.js'
import { declaredPowers } from '../../../plugins/extensions/powers/powers.js'
import { ManifestEntries } from '../../../sdk/node/extension/entries.js'
import { PERMISSION_KINDS, readPermission } from '../../../sdk/node/extension/permission-kinds.js'
import { walled } from '../../attack/support.js'
import { exactly } from '../../support/lists.js'
import { approvePending, daemonWithBackends, listedUntil, recordNamed, writeExtension } from './support.js'

const EXAMPLES = permissionExamples().map(({ entry }) => entry)
const VALUES = EXAMPLES.map(entry => entry.replace(/^[a-z]+:/, ''))
/** The same entries each time, so that a failure comes again; another seed tries others. */
const SEED = Number(process.env.SANDBOX_PROPERTY_SEED ?? 34)
const RUNS = 4_000
/** Pieces that have fooled readers of such texts. */
const PIECES = ['*', '**', '.', '..', '/', '\\', ':', '-', '_', '%2e', '%2F', '{', '}', '[', ']', '\0', '\n', ' ', '@']
const MORE = ['\u202e', '\u200b', 'É', '0x7f', '127.1', '::1', '::ffff:10.0.0.1', 'A', 'z', '9', 'read', 'GET /x', '']

const piece = fc.constantFrom(...PIECES, ...MORE)
const prefix = fc.constantFrom(...PERMISSION_KINDS.map(each => each.prefix), 'fs:', 'Secret:', 'serve:viewer:', 'GET ')
/** An example with a piece put into it, in the place of a part of it. */
const bent = fc.tuple(fc.constantFrom(...EXAMPLES), fc.nat(40), fc.nat(3), piece).map(([entry, at, cut, put]) => {
  const from = Math.min(at, entry.length)
  return entry.slice(0, from) + put + entry.slice(from + cut)
})
const made = fc.tuple(prefix, fc.array(fc.oneof(piece, fc.constantFrom(...VALUES)), { maxLength: 4 }))
const entryText = fc
  .oneof(
    fc.constantFrom(...EXAMPLES),
    bent,
    made.map(([kind, parts]) => kind + parts.join('')),
    fc.string({ unit: 'binary', maxLength: 30 }),
  )
  .filter(text => text.length > 0 && text.length <= 400)

/** What a backend could ask for, made from the texts of the entries themselves and from what attackers want. */
const wanted = (entries: readonly string[]): string[] => {
  const values = entries.flatMap(entry => [entry, entry.slice(entry.indexOf(':') + 1), entry.split(':').at(-1)!])
  return [
    ...new Set([
      ...values.flatMap(value => [value, value.replaceAll('*', 'x'), value.replaceAll('*', ''), `${value}x`]),
      ...[
        'API_KEY',
        'OTHER',
        'tracker/token',
        'ext/other.one/key',
        'git',
        '/bin/sh',
        '../x',
        'x',
        'docs/a.md',
        'secret',
      ],
      ...['example.org', 'a.example.org', '127.0.0.1', '10.0.0.1', '::1', 'localhost', 'agents', 'presence', 'github'],
    ]),
  ]
}

type Holds = (value: string, asked: string) => boolean
const starred: Holds = (value, asked) => (value.endsWith('*') ? asked.startsWith(value.slice(0, -1)) : value === asked)
const globbed: Holds = (glob, path) => {
  const plain = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const part = (text: string) => text.split('*').map(plain).join('[^/]*')
  const parts = glob.split('/')
  const pattern = parts.map((each, at) => {
    const isLast = at === parts.length - 1
    if (each === '**') return isLast ? '.*' : '(?:[^/]+/)*'
    return part(each) + (isLast ? '' : '/')
  })
  return new RegExp(`^${pattern.join('')}$`, 's').test(path)
}
const hosted: Holds = (value, asked) => {
  const [, host = '', port] =
    /^(.*?)(?::(\d+))?$/.exec(value.replace(/^\[(.*)\]/, (_, inner: string) => inner.replaceAll(':', ';'))) ?? []
  const at = asked.lastIndexOf(' ')
  const [name, asPort] = [asked.slice(0, at).replaceAll(':', ';'), asked.slice(at + 1)]
  const named = host === '*' || host === name || (host.startsWith('*.') && name.endsWith(host.slice(1)))
  return named && (port === undefined || port === asPort)
}

/** Whether a power that was shown to a person names something; written apart from the code that it judges. */
const isNamed = (keys: readonly string[], kind: string, asked: string, holds: Holds): boolean =>
  keys.some(key => key.startsWith(`${kind}:`) && holds(key.slice(kind.length + 1), asked))

const PORTS = [80, 443, 5432]

/** Everything that enforcement allows of what could be asked for, with whether a power names it. */
const allowedBy = (sandbox: readonly string[], daemon: readonly string[]) => {
  const entries = new ManifestEntries('ada.one', { sandbox, daemon })
  const keys = declaredPowers({ permissions: { sandbox: [...sandbox], daemon: [...daemon] } }).map(({ key }) => key)
  const equal: Holds = (value, asked) => value === asked
  const asks = wanted([...sandbox, ...daemon])
  const found: { what: string; named: boolean }[] = []
  const note = (allowed: boolean, kinds: readonly string[], asked: string, holds: Holds): void => {
    if (allowed)
      found.push({ what: `${kinds[0]} ${asked}`, named: kinds.some(kind => isNamed(keys, kind, asked, holds)) })
  }
  for (const asked of asks) {
    note(entries.secret(asked) !== undefined, ['secret'], asked, starred)
    note(entries.event(asked) !== undefined, ['event'], asked, starred)
    note(entries.programs.has(asked), ['run'], asked, equal)
    note(entries.connections.has(asked), ['connection'], asked, equal)
    note(entries.file('write', asked) !== undefined, ['fs.write'], asked, globbed)
    note(entries.file('read', asked) !== undefined, ['fs.read', 'fs.write'], asked, globbed)
    for (const port of PORTS) note(entries.netFor(asked, port) !== undefined, ['net'], `${asked} ${port}`, hosted)
  }
  note(entries.readsConversations, ['conversation'], 'read', equal)
  for (const { role, pattern } of entries.serve) note(true, ['serve'], `${role}:${pattern.entry}`, equal)
  for (const { entry } of entries.routes) note(true, ['route'], entry, equal)
  return found
}

t.test('what enforcement allows is named by a power that was approved, for any entry', t => {
  const lists = fc.tuple(fc.array(entryText, { maxLength: 3 }), fc.array(entryText, { maxLength: 2 }))
  let allowed = 0
  fc.assert(
    fc.property(lists, ([sandbox, daemon]) => {
      const found = allowedBy(sandbox, daemon)
      allowed += found.length
      const unnamed = found.filter(({ named }) => !named)
      if (unnamed.length > 0) throw new Error(`allowed and not shown: ${JSON.stringify(unnamed)}`)
    }),
    { numRuns: RUNS, seed: SEED },
  )
  t.ok(allowed > 1_000, 'the entries allowed something')
  t.end()
})

t.test('an entry that is not understood allows nothing, has no power, and is refused or named', t => {
  let refused = 0
  fc.assert(
    fc.property(entryText, fc.constantFrom('sandbox' as const, 'daemon' as const), (entry, list) => {
      const read = readPermission(list, entry)
      if (!('expected' in read)) return
      const given = list === 'daemon' ? allowedBy([], [entry]) : allowedBy([entry], [])
      const powers = declaredPowers({ permissions: { [list]: [entry] } })
      if (given.length > 0 || powers.length > 0) throw new Error(`it gives ${JSON.stringify([given, powers])}`)
      const parsed = parseExtension(Buffer.from(JSON.stringify({ permissions: { [list]: [entry] } })), 'one')
      const error = 'error' in parsed ? parsed.error : ''
      const [place, finding] = [`permissions.${list}[0]: expected `, `, found ${JSON.stringify(entry)}`]
      if (error !== '' && error.startsWith(place) && error.endsWith(finding)) refused++
      else if (error !== '' || read.known || list === 'daemon') throw new Error(`the sentence is ${error}`)
    }),
    { numRuns: RUNS, seed: SEED },
  )
  t.ok(refused > 200, 'many were refused')
  t.end()
})

t.test('two entries are never the same power, and what people read of one has no unseen characters', t => {
  let compared = 0
  const understood = entryText.filter(entry => !('expected' in readPermission('sandbox', entry)))
  fc.assert(
    fc.property(understood, understood, (one, other) => {
      const [first, second] = [readPermission('sandbox', one), readPermission('sandbox', other)]
      if ('expected' in first || 'expected' in second || one === other) return
      compared++
      if (first.power.key === second.power.key) throw new Error(`both are ${first.power.key}`)
      if (/[\p{Cc}\p{Cf}]/u.test(first.power.text)) throw new Error('it has unseen characters')
    }),
    { numRuns: RUNS, seed: SEED },
  )
  t.ok(compared > 2_000, 'most were two')
  t.end()
})

t.test('each entry has one spelling', t => {
  const is = (entry: string): boolean => !('expected' in readPermission('sandbox', entry))
  const wrong = [
    ...[
      'secret:*',
      'secret:',
      'secret:API_**',
      'secret:a b',
      'secret:conn/token',
      'secret:1A',
      'run:/bin/sh',
      'run:..',
    ],
    ...[
      'net:Example.org',
      'net:example.org.',
      'net:example.org:0',
      'net:example.org:080',
      'net:',
      'net::80',
      'net:[*]',
    ],
    ...['net:2130706433', 'net:127.1', 'net:0x7f.0.0.1', 'net:::1', 'net:[::ffff:127.0.0.1]', 'net:[0::1]', 'net:*.'],
    ...[
      'fs:read:/etc/**',
      'fs:read:../x',
      'fs:read:a//b',
      'fs:read:./a',
      'fs:read:a/',
      'fs:read:a**',
      'fs:read:a\\b',
      'fs:read:**/**',
    ],
    ...['connection:GitHub', 'connection:', 'event:', 'event:*x', 'conversation:write', 'conversation:'],
    ...['serve:maintainer:*', 'serve:viewer:POST x', 'serve:guest:POST /x', 'serve::POST /x', 'GET  /x', 'GET /x/'],
    ...['get /x', 'GET /a/../b', 'GET /a?b', 'GET /**/x', 'GET /{a', 'GET /a%2Fb', 'HEAD /x', 'fs:burn:x', '*', ''],
  ]
  t.match(wrong.filter(is), exactly())
  t.match(
    EXAMPLES.filter(entry => !is(entry)),
    exactly(),
  )
  t.end()
})

t.test('an entry that nobody could approve makes a manifest unusable', async t => {
  const daemon = await daemonWithBackends(t)
  for (const [at, entry] of ['secret:*', 'run:/bin/sh', 'net:2130706433'].entries()) {
    const permissions = { sandbox: ['fs:read:docs/**', entry] }
    writeExtension(daemon, `greedy-${at}`, { publisher: 'eve', name: `greedy-${at}`, server: 'server.js', permissions })
    const dir = `.sandbox/config/workspace-extensions/greedy-${at}`
    const { error } = await listedUntil(daemon, list => list.invalid.find(each => each.dir === dir))
    t.match(error, /^permissions\.sandbox\[1\]: expected (?:secret|run|net):/)
    t.ok(error.endsWith(`, found ${JSON.stringify(entry)}`), error)
  }
})

const SERVER = `export const activate = host => {
  const options = { floor: 'viewer' }
  host.routes.handle('POST /named', options, () => ({ body: {} }))
  host.routes.handle('POST /unnamed', options, () => ({ body: {} }))
  host.routes.handle('POST /raised', { floor: 'owner' }, () => ({ body: {} }))
  host.routes.handle('GET /read', options, () => ({ body: {} }))
}`

t.test('a floor that the manifest does not lower is a problem of the record', walled(), async t => {
  const daemon = await daemonWithBackends(t)
  const permissions = { sandbox: ['serve:viewer:POST /named'] }
  const manifest = { publisher: 'eve', name: 'floors', version: '1.0.0', server: 'server.js', permissions }
  writeExtension(daemon, 'floors', manifest, { 'server.js': SERVER })
  await listedUntil(daemon, ({ pending }) => pending.some(({ id }) => id === 'eve.floors'))
  await approvePending(daemon, 'eve.floors')
  await listedUntil(daemon, ({ extensions }) =>
    extensions.some(({ id, backend }) => id === 'eve.floors' && backend?.state === 'running'),
  )
  const { problems } = await recordNamed(daemon, 'eve.floors')
  t.match(
    problems,
    exactly(
      'its route POST /unnamed answers from role maintainer on: floor viewer has no effect without '
        + '"serve:viewer:POST /unnamed" in permissions.sandbox',
    ),
  )
  const { checks } = await daemon.client.call('GET /extensions/{id}/readiness', { id: 'eve.floors' })
  t.match(checks[0], { id: 'manifest', status: 'warn', detail: /POST \/unnamed/ })
})
