import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { ActivityEvent } from '../../../plugins/activity/contract.js'
import { exported } from '../../../plugins/activity/export.js'
import { Recorder } from '../../../plugins/activity/record.js'
import { retain } from '../../../plugins/activity/retention.js'
import { Segments } from '../../../plugins/activity/segments.js'
import { MarkFile, Verification } from '../../../plugins/activity/verification.js'
import { canonical, ChainCheck } from '../../../sdk/node/record/chain.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, folderOf, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { record, stored } from './support.js'

const written = async (daemon: Support, count: number): Promise<void> => {
  await Promise.all(
    Array.from({ length: count }, (_, n) =>
      record(daemon, {
        type: 'test.row',
        direction: 'system',
        content: `row ${n}`,
        extra: { n, b: 'é\u{1f600}', a: [1.5, true] },
      }),
    ),
  )
}
const again = (t: Test, { workspace, data }: Support): Promise<Support> =>
  daemonWith(t, ['activity'], { workspace, data })
const fileOf = ({ data }: { data: string }): string => {
  const folder = join(data, 'activity', 'days')
  return join(folder, readdirSync(folder).sort().at(-1)!)
}
const textOf = async ({ fetch }: Support, query = ''): Promise<string> =>
  (await fetch(`/activity/export${query}`)).text()

/** Checks an export as somebody would who has only the description of the form. */
const independent = (text: string): number | undefined => {
  const ordered = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(ordered)
      : typeof value === 'object' && value !== null
        ? Object.fromEntries(
            Object.keys(value)
              .sort()
              .map(key => [key, ordered((value as { [key: string]: unknown })[key])]),
          )
        : value
  let seq = 0
  let before = '0'.repeat(64)
  for (const line of text.trimEnd().split('\n').slice(0, -1)) {
    seq += 1
    try {
      const { hash, ...entry } = JSON.parse(line) as ActivityEvent
      const own = createHash('sha256')
        .update(JSON.stringify(ordered(entry)))
        .digest('hex')
      if (entry.seq !== seq || entry.prev !== before || own !== hash) return seq
      before = hash
    } catch {
      return seq
    }
  }
  return undefined
}

t.test('who may not is refused, and the range must be one', async t => {
  const daemon = await daemonWith(t, ['activity'])
  for (const path of ['/activity/status', '/activity/export'])
    t.equal((await fetch(daemon.url + path)).status, 401, path)
  for (const scope of ['read', 'drive', 'land', 'editor'] as const) {
    const { client } = await daemon.token(scope)
    t.match(await refusalOf(() => client.call('GET /activity/export')), { status: 403 }, scope)
    if (scope === 'editor') t.match(await refusalOf(() => client.call('GET /activity/status')), { status: 403 })
    else t.match(await client.call('GET /activity/status'), { connections: { length: 0 } })
  }
  t.match(await refusalOf(() => daemon.client.call('GET /activity/export', { from: 2, to: 1 })), {
    status: 400,
    detail: { errors: exactly({ path: 'from' }) },
  })
  t.same(stored(daemon), [], 'nothing was exported')
})

t.test('only reads are served, and refusals are JSON', async t => {
  const daemon = await daemonWith(t, ['activity'])
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    for (const path of ['/activity', '/activity/status', '/activity/1']) {
      const response = await daemon.fetch(path, { method, body: '{}' })
      t.ok([404, 405].includes(response.status), `${method} ${path}: ${response.status}`)
      t.type(((await response.json()) as { message: string }).message, 'string')
    }
  }
})

t.test('an empty record is whole, and so is one with entries', async t => {
  const daemon = await daemonWith(t, ['activity'])
  t.match(await daemon.client.call('GET /activity/status'), {
    chain: { entries: 0, intact: true, head: /^0{64}$/ },
    bytes: 0,
  })
  await written(daemon, 20)
  const { chain, bytes } = await daemon.client.call('GET /activity/status')
  const entries = stored(daemon)
  t.match(chain, { entries: 20, intact: true, head: entries.at(-1)!.hash, headAt: entries.at(-1)!.at })
  t.ok(bytes > 1000)
  await daemon.stop()
  const next = await again(t, daemon)
  t.match(await next.client.call('GET /activity/status'), {
    chain: { entries: 20, intact: true },
    oldestAt: entries[0]!.at,
  })
})

t.test('an export holds the stored entries, names its author, and ends with a summary', async t => {
  const daemon = await daemonWith(t, ['activity'])
  await written(daemon, 30)
  const response = await daemon.fetch('/activity/export')
  t.equal(response.headers.get('content-type'), 'application/x-ndjson')
  const text = await response.text()
  const lines = text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
  const entries = stored(daemon)
  t.same(lines.slice(0, -1), entries)
  t.same(lines.at(-1), { kind: 'end', entries: 31, head: entries.at(-1)!.hash })
  t.match(entries.at(-1), { type: 'activity.exported', actor: 'owner@sandbox.local', audience: 'maintainer' })
  t.equal(independent(text), undefined)
  const part = await textOf(daemon, `?from=${entries[4]!.at}&to=${entries[9]!.at}`)
  t.same(
    part
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line).seq),
    [5, 6, 7, 8, 9, 10, undefined],
  )
  t.equal((await daemon.fetch('/activity/export', { method: 'HEAD' })).status, 200)
})

t.test(
  'one byte changed in a stored segment is found at the next start, and an independent check names the same entry',
  async t => {
    for (const [what, seq, change] of [
      ['a letter', 7, (line: string) => line.replace('row', 'rov')],
      [
        'a hash',
        12,
        (line: string) => line.replace(/"hash":"./, found => found.slice(0, -1) + (found.endsWith('0') ? '1' : '0')),
      ],
      ['what makes it JSON', 3, (line: string) => line.replace('{', '(')],
      ['a number', 19, (line: string) => line.replace('"seq":19', '"seq":18')],
      ['a byte that is no text', 20, (line: string) => line.replace('row', 'r\0w')],
    ] as const) {
      await t.test(what, async t => {
        const first = await daemonWith(t, ['activity'])
        await written(first, 20)
        await first.stop()
        const lines = readFileSync(fileOf(first), 'utf8').split('\n')
        lines[seq - 1] = change(lines[seq - 1]!)
        writeFileSync(fileOf(first), lines.join('\n'))
        const second = await again(t, first)
        t.match((await second.client.call('GET /activity/status')).chain, { intact: false, brokenAt: seq })
        t.equal(independent(await textOf(second)), seq)
        const {
          events: [, broken],
        } = await second.client.call('GET /activity')
        t.match(broken, { type: 'activity.chain_broken', direction: 'system', extra: { brokenAt: seq } })
        await second.stop()
        const third = await again(t, second)
        t.match(
          (await third.client.call('GET /activity/status')).chain,
          { intact: false, brokenAt: seq, anchor: { seq: broken!.seq - 1 } },
          'it stays known',
        )
        t.equal(
          (await third.client.call('GET /activity', { type: 'activity.chain_broken' })).events.length,
          1,
          'and is told once',
        )
      })
    }
  },
)

t.test('a truncated or rewritten segment is found, also when its hashes match', async t => {
  const first = await daemonWith(t, ['activity'])
  await written(first, 20)
  await first.client.call('GET /activity/status')
  await first.stop()
  const second = await again(t, first)
  await second.client.call('GET /activity/status')
  await second.stop()
  const text = readFileSync(fileOf(first), 'utf8')
  truncateSync(fileOf(first), Buffer.byteLength(text.split('\n').slice(0, 15).join('\n')) + 1)
  const third = await again(t, first)
  t.match((await third.client.call('GET /activity/status')).chain, { intact: false, brokenAt: 16 })
  await record(third, { type: 'test.after', direction: 'system' })
  t.equal((await third.client.call('GET /activity')).events[0]!.seq, 22, 'a number is given once')
})

t.test('the end that is changed under a running daemon is found at the next call', async t => {
  const daemon = await daemonWith(t, ['activity'])
  await written(daemon, 5)
  t.equal((await daemon.client.call('GET /activity/status')).chain.intact, true)
  writeFileSync(fileOf(daemon), readFileSync(fileOf(daemon), 'utf8').replace('row 4', 'row 5'))
  t.match((await daemon.client.call('GET /activity/status')).chain, { intact: false, brokenAt: 5 })
})

t.test('an entry that was torn by the end of its writer is dropped, and the chain goes on', async t => {
  const first = await daemonWith(t, ['activity'])
  await written(first, 5)
  await first.stop()
  writeFileSync(fileOf(first), '{"seq":6,"at":17', { flag: 'a' })
  const second = await again(t, first)
  await record(second, { type: 'test.after', direction: 'system' })
  t.match((await second.client.call('GET /activity/status')).chain, { intact: true, entries: 6 })
  t.same(
    stored(second).map(({ seq }) => seq),
    [1, 2, 3, 4, 5, 6],
  )
})

t.test(
  'canonical JSON orders keys by their units, writes numbers as ECMAScript does, and leaves nothing else to choose',
  t => {
    t.equal(
      canonical({ b: [1e21, 0.1, -0, { z: null, a: 'é"\n' }], a: true, '\u20ac': 1, '10': 1, '9': 2 }),
      '{"10":1,"9":2,"a":true,"b":[1e+21,0.1,0,{"a":"é\\"\\n","z":null}],"€":1}',
    )
    t.equal(canonical({ a: undefined }), '{}')
    t.end()
  },
)

t.test(
  'the oldest days go when they are old and there is too much, and the chain stands on their last hash',
  async t => {
    const folder = folderOf(t)
    const clock = { now: Date.UTC(2026, 0, 1) }
    const now = () => clock.now
    const kept: { [name: string]: unknown } = {}
    const files = {
      read: async (name: string) => kept[name] as never,
      write: async (name: string, value: unknown) => void (kept[name] = value),
    }
    const days = new Segments(folder, 'days')
    const rest = new Segments(folder, 'kept')
    const marks = await MarkFile.open(files)
    const recorder = await Recorder.open(days, now)
    for (let day = 0; day < 10; day++) {
      for (const audience of ['viewer', 'maintainer'] as const)
        await recorder.record({ type: 'test.day', direction: 'system', audience, content: `day ${day}` })
      clock.now += 24 * 60 * 60_000
    }
    const limits = { age: 5 * 24 * 60 * 60_000, bytes: 1, kept: 1e6 }
    await retain({ days, kept: rest, marks, now, limits: { ...limits, bytes: 1e6 } })
    t.equal((await days.names()).length, 10, 'old days stay while there is room')
    await retain({ days, kept: rest, marks, now, limits })
    t.same(await days.names(), ['2026-01-06', '2026-01-07', '2026-01-08', '2026-01-09', '2026-01-10'])
    t.same(
      await rest.names(),
      ['2026-01-01', '2026-01-02', '2026-01-03', '2026-01-04', '2026-01-05'],
      'entries for maintainers go last',
    )
    t.match(marks.marks.anchor, { seq: 10 })
    const verification = new Verification({
      segments: days,
      recorder,
      marks,
      now,
      record: facts => recorder.record(facts),
    })
    t.match(await verification.status(), { intact: true, entries: 10, anchor: { seq: 10 } })
    await retain({ days, kept: rest, marks, now, limits: { ...limits, kept: 0 } })
    t.same(await rest.names(), [])
    const check = new ChainCheck()
    for await (const piece of exported(days, {}))
      for (const line of piece.toString().trimEnd().split('\n')) if (!line.includes('"kind":"end"')) check.read(line)
    t.equal(check.brokenAt, undefined)
    await Promise.all([days.close(), rest.close()])
  },
)

t.test(
  'after a write that failed the chain goes on from what of it is on the disk, all, a part or nothing',
  async t => {
    for (const lasting of [2, 1, 0]) {
      const days = new Segments(folderOf(t), 'days')
      const { append } = days
      const recorder = await Recorder.open(days, Date.now)
      const write = (content: string) =>
        recorder.record({ type: 'test.row', direction: 'system', audience: 'viewer', content })
      await write('before')
      days.append = async (name, entries) => {
        if (lasting > 0) await append.call(days, name, entries.slice(0, lasting))
        throw new Error('the disk is broken')
      }
      await Promise.all(['one', 'two'].map(content => t.rejects(write(content), /broken/)))
      days.append = append
      await write('after')
      const check = new ChainCheck()
      for (const name of await days.names())
        for await (const piece of days.forwards(name))
          for (const line of piece.toString().trimEnd().split('\n')) check.read(line)
      t.same([check.brokenAt, check.entries, check.head?.seq], [undefined, lasting + 2, lasting + 2])
      await days.close()
    }
  },
)
