import t from 'tap'
import { EventParser, readEvents, TooLong, type ServerEvent } from '../../sdk/events.js'

const bytes = (text: string) => new TextEncoder().encode(text)

const parse = (pieces: Iterable<Uint8Array>): ServerEvent[] => {
  const parser = new EventParser()
  return [...pieces].flatMap(piece => [...parser.push(piece)])
}

const whole = (text: string) => parse([bytes(text)])
const message = (data: string, id = '', event = 'message') => ({ event, data, id })

const TABLE: readonly [name: string, text: string, events: ServerEvent[]][] = [
  ['one event', 'data: a\n\n', [message('a')]],
  ['only the first space goes', 'data:  a\n\ndata:b\n\n', [message(' a'), message('b')]],
  ['several lines of data', 'data: a\ndata\ndata: b\n\n', [message('a\n\nb')]],
  ['a line without a colon', 'data\n\ndata\ndata\n\ndata:', [message(''), message('\n')]],
  ['comments and unknown fields', ': hello\nfoo: 1\n: \ndata: a\n:\n\n: \n\n', [message('a')]],
  ['returns', 'data: a\r\rdata: b\r\r', [message('a'), message('b')]],
  ['returns with line feeds', 'data: a\r\n\r\ndata: b\r\n\r\n', [message('a'), message('b')]],
  ['mixed ends', 'data: a\r\ndata: b\ndata: c\r\n\r', [message('a\nb\nc')]],
  [
    'a byte order mark, once',
    '\uFEFFdata: a\n\n\uFEFFdata: b\n\ndata: \uFEFFc\n\n',
    [message('a'), message('\uFEFFc')],
  ],
  ['an event type for one event', 'event: done\ndata: 1\n\ndata: 2\n\n', [message('1', '', 'done'), message('2')]],
  [
    'an id that stays',
    'id: r:1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n',
    [message('a', 'r:1'), message('b', 'r:1'), message('c')],
  ],
  ['an id with NUL is ignored', 'id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n', [message('a', '1'), message('b', '1')]],
  ['an event without data is none, its id counts', 'id: 7\nevent: x\n\ndata: a\n\n', [message('a', '7')]],
  ['an unfinished event is dropped', 'data: a\n\ndata: b\n', [message('a')]],
  ['text outside ASCII', 'data: grün 🌱 数\n\n', [message('grün 🌱 数')]],
]

t.test('events are parsed by the WHATWG rules', async t => {
  for (const [name, text, events] of TABLE) t.same(whole(text), events, name)
})

t.test('any split of the bytes gives the same events', async t => {
  for (const [name, text, events] of TABLE) {
    const all = bytes(text)
    t.same(parse([...all].map(byte => Uint8Array.of(byte))), events, `${name}, byte by byte`)
    for (let cut = 0; cut <= all.length; cut++)
      t.same(parse([all.subarray(0, cut), all.subarray(cut)]), events, `${name}, cut at ${cut}`)
  }
})

t.test('retry is reported when it is a number of ASCII digits', async t => {
  const told: number[] = []
  const parser = new EventParser({ onRetry: ms => told.push(ms) })
  t.same([...parser.push(bytes('retry: 250\nretry: 1e3\nretry: -1\nretry:\nretry: ٣\n\n'))], [])
  t.same(told, [250])
})

t.test("an event over the reader's limit is refused, however it grows", async t => {
  for (const text of ['data: ' + 'x'.repeat(200), 'data: xx\n'.repeat(20), ': '.padEnd(200, 'x')]) {
    const parser = new EventParser({ most: 100 })
    t.throws(() => [...bytes(text)].forEach(byte => [...parser.push(Uint8Array.of(byte))]), TooLong)
  }
  const parser = new EventParser({ most: 100 })
  t.equal([...parser.push(bytes('data: xxxxxxxxxx\n\n'.repeat(100)))].length, 100, 'many short ones are accepted')
})

t.test('a line in a thousand pieces costs no more than its length', async t => {
  const parser = new EventParser()
  const piece = bytes('x'.repeat(1000))
  const started = process.cpuUsage().user
  ;[...parser.push(bytes('data: '))]
  for (let i = 0; i < 3000; i++) [...parser.push(piece)]
  const [event] = [...parser.push(bytes('\n\n'))]
  t.equal(event!.data.length, 3_000_000)
  t.ok(process.cpuUsage().user - started < 2_000_000, 'under two seconds of processor time')
})

t.test('a body is read only as fast as its events are taken, and released when the reader stops', async t => {
  let pulled = 0
  let cancelled = false
  const body = new ReadableStream<Uint8Array>({
    pull: controller => controller.enqueue(bytes(`data: ${++pulled}\n\n`)),
    cancel: () => {
      cancelled = true
    },
  })
  for await (const { data } of readEvents(body)) if (data === '3') break
  t.ok(pulled <= 5, `${pulled} pieces were pulled for 3 events`)
  t.ok(cancelled)
})
