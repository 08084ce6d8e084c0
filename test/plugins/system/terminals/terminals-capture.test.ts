import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Capture } from '../../../../plugins/system/terminals/capture.js'
import { tookLess } from '../../../support/in-time.js'
import { exactly } from '../../../support/lists.js'

const SIZE = { cols: 80, rows: 24 }

const captured = async (t: Test) => {
  const folder = t.testdir()
  const path = join(folder, 'terminals', 'web-a.log')
  const capture = await Capture.open(path, SIZE)
  return {
    capture,
    path,
    text: () => (existsSync(path) ? readFileSync(path, 'utf8') : ''),
    lines: () => readFileSync(path, 'utf8').trimEnd().split('\n'),
  }
}
/** Every line of a rotated log, the oldest first. */
const wholeOf = (path: string): string[] =>
  [`${path}.2`, `${path}.1`, path].filter(existsSync).flatMap(each => readFileSync(each, 'utf8').trimEnd().split('\n'))
const skippedIn = (lines: readonly string[]): number =>
  lines.reduce((sum, line) => sum + Number(/ (\d+) lines skipped/.exec(line)?.[1] ?? 0), 0)

t.test('lines are written as they arrive, and at the end the last one and the end of the terminal', async t => {
  const { capture, text, lines } = await captured(t)
  capture.note('the terminal begins')
  capture.write(Buffer.from('$ echo \x1b[1mwords\x1b[0m\r\nwor'))
  capture.write(Buffer.from('ds\r\n$ '))
  while (!text().includes('words\nwords\n')) await delay(10)
  await capture.end('the terminal has ended')
  t.match(
    lines().map(line => line.replace(/^\[[\d-]+T[\d:.]+Z /, '[')),
    exactly('[the terminal begins]', '$ echo words', 'words', '$ ', '[the terminal has ended]'),
  )
  capture.write(Buffer.from('more\r\n'))
  capture.resize(SIZE)
  await capture.end('again')
  t.notMatch(text(), /more|again/)
})

t.test('credentials are replaced, in any pieces and line breaks of the shell', async t => {
  const { capture, text } = await captured(t)
  const said = [
    `$ curl -H 'authorization: Bearer hidden-in-the-header' https://ann:hiddenpass@example.org/?ticket=hiddenticket`,
    'sbc_hiddentokenvalue.hidden and {"token":"x"}',
    '-----BEGIN RSA PRIVATE KEY-----',
    'Proc-Type: 4,ENCRYPTED',
    ...Array.from({ length: 60 }, () => 'aGlkZGVuIGtleQ=='.repeat(4)),
    '-----END RSA PRIVATE KEY-----',
    `$ export T=${'x'.repeat(60)} \x1b[1mghp_hidden${'A'.repeat(30)} \rhidden is a word`,
    'after',
  ]
    .map(line => `${line}\r\n`)
    .join('')
  for (const piece of said.match(/[^]{1,11}/g)!) {
    capture.write(Buffer.from(piece))
    if (piece.includes('Zi')) await delay(1)
  }
  await capture.end('over')
  t.notMatch(text(), /hiddenpass|hiddenticket|hiddentoken|hidden-in|aGlk|ghp_hidden/)
  t.match(text(), /authorization: \[redacted\]/)
  t.match(text(), /sbc_\[redacted\]/)
  t.match(text(), /\nafter\n/)
})

t.test('a private key is replaced also if its lines arrive one by one', async t => {
  const { capture, text } = await captured(t)
  for (const line of [
    'before',
    '-----BEGIN PRIVATE KEY-----',
    'aGlkZGVu',
    'aGlkZGVu',
    '-----END PRIVATE KEY-----',
    'after',
    'last',
  ]) {
    capture.write(Buffer.from(`${line}\r\n`))
    await delay(5)
  }
  await capture.end('over')
  t.notMatch(text(), 'aGlk')
  t.match(text(), /before\n\[redacted\]\nafter\nlast\n/)
})

t.test('the log has no control sequences or characters that reorder a line', async t => {
  const { capture, text } = await captured(t)
  capture.write(Buffer.from('a\u202eb\u200bc \x1b]52;c;aGk=\x07\x1bPq1\x1b\\d\x00\x7f\x9b31m\xff\r\n', 'latin1'))
  capture.write(Buffer.from('e\u202ef\u2066g\r\n'))
  await capture.end('over')
  t.notMatch(text(), /[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2066]/)
  t.match(text(), 'e\\u202ef\\u2066g')
})

t.test('200 MB need no memory and little time, and every line is logged or counted', async t => {
  const { capture, path } = await captured(t)
  const lines = 10_000
  const piece = (n: number) =>
    Buffer.from(
      Array.from({ length: lines }, (_, at) => `number ${String(n * lines + at).padStart(12, '0')}\r\n`).join(''),
    )
  const pieces = 1_000
  let [took, most] = [0, 0]
  for (let n = 0; n < pieces; n++) {
    const bytes = piece(n)
    const began = performance.now()
    capture.write(bytes)
    took += performance.now() - began
    if (n % 10 === 0) {
      await delay(1)
      most = Math.max(most, process.memoryUsage().arrayBuffers)
    }
  }
  await capture.end('over')
  const all = wholeOf(path)
  const seen = all.filter(line => line.startsWith('number ')).map(line => Number(line.slice(7)))
  t.ok(tookLess(took, 3_000), `${Math.round(took)} ms to take ${pieces * lines} lines`)
  t.ok(most < 100 << 20, `${most >> 20} MiB at most`)
  t.equal(seen.length + skippedIn(all), pieces * lines)
  t.ok(
    seen.every((number, at) => at === 0 || number > seen[at - 1]!),
    'in order',
  )
  t.equal(seen.at(-1), pieces * lines - 1, 'the last ones are logged')
})

t.test('skipped output ends lines, modes and sequences', async t => {
  const { capture, path } = await captured(t)
  const many = (word: string, count: number) => Buffer.from(`${word}\r\n`.repeat(count))
  capture.write(Buffer.from('first\r\ntoken ghp_hidden'))
  await delay(50)
  capture.write(
    Buffer.concat([Buffer.from(`${'A'.repeat(40)}\r\n\x1bPq`), many('row', 900_000), Buffer.from('\x1b[?1049h')]),
  )
  capture.write(many('drawn', 10))
  await delay(50)
  capture.write(Buffer.concat([many('drawn', 400_000), Buffer.from('\x1b[?1049l'), many('last', 10)]))
  await capture.end('over')
  const lines = wholeOf(path)
  t.match(lines[0], 'first')
  t.match(lines[1], /\d+ lines skipped/)
  t.notOk(
    lines.some(line => line.includes('ghp') || line.includes('AAA')),
    'no part of a credential',
  )
  t.same(
    lines.slice(-11, -1),
    Array.from({ length: 10 }, () => 'last'),
  )
})

t.test('an endless line is logged partly, and needs no memory', async t => {
  const { capture, path } = await captured(t)
  const before = process.memoryUsage().rss
  for (let n = 0; n < 200; n++) {
    capture.write(Buffer.alloc(256 << 10, 'x'))
    if (n % 20 === 0) await delay(1)
  }
  capture.write(Buffer.from('\r\nafter\r\n'))
  await capture.end('over')
  t.ok(process.memoryUsage().rss - before < 128 << 20)
  const lines = wholeOf(path)
  t.ok(lines.every(line => line.length < 40_000))
  t.equal(lines.at(-2), 'after')
})

t.test('a log that cannot be written fails no call', async t => {
  const folder = t.testdir({ terminals: 'no folder' })
  const capture = await Capture.open(join(folder, 'terminals', 'web-a.log'), SIZE)
  capture.write(Buffer.from('words\r\n'.repeat(1_000)))
  await capture.end('over')
  t.same(readdirSync(folder), ['terminals'])
})
