import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { BEGINNING, hashOfEntry } from '../../../sdk/node/record/chain.js'
import { fakeDaemon, sandbox } from './cli-process.js'
import { json, streaming, wire } from '../wire.js'
import { exactly } from '../../support/lists.js'

const rows = (count: number) => {
  let prev = BEGINNING
  return Array.from({ length: count }, (_, n) => {
    const entry = {
      seq: n + 1,
      at: Date.UTC(2026, 0, 2, 3, 4, n),
      id: `a-${n + 1}`,
      actor: 'ada@example.org',
      direction: 'system',
      type: 'agent.landed',
      title: `work ${n}`,
      audience: 'viewer',
      prev,
    }
    prev = hashOfEntry(entry)
    return { ...entry, hash: prev }
  })
}
const fileOf = (lines: readonly object[], end = true): string =>
  [
    ...lines,
    ...(end
      ? [{ kind: 'end', entries: lines.length, head: (lines.at(-1) as { hash?: string } | undefined)?.hash ?? '' }]
      : []),
  ]
    .map(line => `${JSON.stringify(line)}\n`)
    .join('')

t.test('activity shows the newest entries, the oldest of them first, and applies a filter', async t => {
  const [first, second, third] = rows(3)
  const asked: string[] = []
  const daemon = await fakeDaemon(t, ({ query }, response) => {
    asked.push(query.toString())
    return json(response, 200, {
      events: query.get('type')
        ? []
        : [{ ...third, outcome: 'error', error: 'no\u001b[31m room' }, { ...second, extra: { count: 2 } }, first],
    })
  })
  const { code, out } = await daemon.run(['activity'])
  t.equal(code, 0)
  t.match(
    out.split('\n'),
    exactly(
      /^WHEN +WHAT +WHO +ABOUT +DETAILS +OUTCOME$/,
      /^2026-01-02 \d\d:04 {2}agent\.landed +ada@example\.org +work 0$/,
      /work 1 +count 2$/,
      /work 2 +error, no\\u001b\[31m room$/,
      '',
    ),
  )
  t.equal(
    (await daemon.run(['activity', '--type', 'session.*', '--actor', 'token:ci', '--find', 'a b', '--limit', '5'])).out,
    'no entries match\n',
  )
  t.same(asked, ['limit=20', 'type=session.*&actor=token%3Aci&query=a+b&limit=5'])
  const lines = (await daemon.run(['activity', '--json'])).out
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as { seq: number })
  t.same(
    lines.map(({ seq }) => seq),
    [1, 2, 3],
  )
  t.equal((await daemon.run(['activity', '--limit', '0'])).code, 2)
  t.equal((await daemon.run(['activity', 'what'])).code, 2)
})

t.test('activity --follow continues with every new entry, each once', async t => {
  const all = rows(5)
  let told = 1
  const daemon = await fakeDaemon(t, ({ path, query }, response) => {
    if (path !== '/events')
      return json(response, 200, {
        events: all
          .slice(0, told)
          .filter(({ at }) => at >= Number(query.get('from') ?? 0))
          .reverse(),
      })
    const hello = { kind: 'hello', me: { actor: 'x', role: 'owner' }, boot: { ready: true }, versions: {} }
    const changed = (...domains: string[]) => wire('message', { kind: 'runtimeChanged', domains, versions: {} }, 'e-1')
    streaming(response).write(wire('message', hello, 'e-0'))
    told = 3
    response.write(changed('sessions') + changed('activity'))
    setImmediate(() => {
      told = 5
      response.end(changed('activity', 'agents') + wire('done', { reason: 'stopping', retryMs: 1 }, ''))
    })
  })
  const { out } = await daemon.run(['activity', '--follow', '--json'])
  t.same(
    out
      .trim()
      .split('\n')
      .map(line => (JSON.parse(line) as { seq: number }).seq),
    [1, 2, 3, 4, 5],
  )
})

t.test('activity verify needs no daemon, and says what is wrong with a record', async t => {
  const folder = t.testdir()
  const file = join(folder, 'record')
  const verified = async (text: string, args: string[] = []) => {
    writeFileSync(file, text)
    const { code, out } = await sandbox(['activity', 'verify', file, ...args])
    return { code, out }
  }
  const all = rows(4)
  t.match(await verified(fileOf(all)), { code: 0, out: /^intact: 4 entries, up to number 4, head [0-9a-f]{64}\n$/ })
  t.match(await verified(fileOf(all.slice(2))), { code: 0, out: /^intact: 2 entries/ }, 'a part can be checked')
  t.match(await verified(fileOf([])), { code: 0, out: 'intact: 0 entries\n' })
  const changed = all.map(entry => (entry.seq === 3 ? { ...entry, title: 'other work' } : entry))
  t.match(await verified(fileOf(changed)), { code: 1, out: 'broken: entry 3 is not what was written\n' })
  t.match(await verified(fileOf(all.filter(({ seq }) => seq !== 2))), {
    code: 1,
    out: 'broken: entry 2 is not what was written\n',
  })
  t.match(await verified(fileOf(all).replace('{', '(')), { code: 1, out: 'broken: entry 1 is not what was written\n' })
  t.match(await verified(fileOf(all, false)), { code: 1, out: /^cut off: .* after entry 4\n$/ })
  t.match(JSON.parse((await verified(fileOf(changed), ['--json'])).out), {
    intact: false,
    brokenAt: 3,
    entries: 4,
    whole: true,
  })
  t.match(await sandbox(['activity', 'verify', '-'], { input: fileOf(all) }), { code: 0, out: /^intact/ })
  t.match(await sandbox(['activity', 'verify', join(folder, 'none')]), { code: 1, err: /cannot be read/ })
})
