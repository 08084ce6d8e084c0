import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { Test } from 'tap'
import { EVERY_CASE } from '../../support/lists.js'
import { HOSTILE_TEXTS, UNSHOWN } from './hostile-texts.js'

const MIB = 1024 * 1024

/** JSON that is nested deeper than a program that walks it has stack. */
const deep = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
const deepObject = (depth: number) => `${'{"message":'.repeat(depth)}1${'}'.repeat(depth)}`

/** JSON in the place of any value of an answer. */
export const VALUES: readonly string[] = [
  ...['null', 'true', '0', '-1', '1.5', '1e308', '9007199254740993', '""', '[]', '{}', '[null]', '[[1]]', '{"a":null}'],
  ...['"constructor"', '"__proto__"', '"1e308"', '"+275760-09-13T00:00:00Z"', '"-271821-04-20T00:00:00Z"'],
  '{"__proto__":{"polluted":1},"constructor":1,"toString":1,"length":1e9}',
  ...['javascript:alert(1)', 'file:///etc/passwd', 'http://169.254.169.254/', 'https://a:b@c/'].map(
    text => `"${text}"`,
  ),
  JSON.stringify(HOSTILE_TEXTS.join(' ')),
  JSON.stringify('x'.repeat(MIB)),
  deep(20_000),
  deepObject(20_000),
]

/** As many of thousands of like cases as there is time for, spread over them: three times as many in whole runs. */
export const someOf = <T>(cases: readonly T[], most: number): readonly T[] => {
  const count = Math.min(cases.length, EVERY_CASE ? 3 * most : most)
  return Array.from({ length: count }, (_, at) => cases[Math.floor((at * cases.length) / count)]!)
}

/** Every JSON text that differs from a right answer in one place, `{"a":[1]}` in its whole, `a` and `a.0`. */
export function* spoiled(right: unknown): Generator<string> {
  for (const value of VALUES) yield value
  if (typeof right !== 'object' || right === null) return
  for (const [name, inner] of Object.entries(right))
    for (const value of spoiled(inner)) {
      const fields = Object.entries(right).map(([key, each]) => [key, key === name ? value : JSON.stringify(each)])
      yield Array.isArray(right)
        ? `[${fields.map(([, text]) => text).join(',')}]`
        : `{${fields.map(([key, text]) => `${JSON.stringify(key)}:${text}`).join(',')}}`
    }
}

const head = (status: string, ...lines: readonly string[]) =>
  `HTTP/1.1 ${status}\r\n${lines.map(l => `${l}\r\n`).join('')}\r\n`

/** Writes one piece again and again, as fast as it is read. */
const forever = async (socket: Socket, piece: string | Buffer): Promise<void> => {
  while (!socket.destroyed)
    if (!socket.write(piece)) await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => {})
}

const bomb = gzipSync(Buffer.alloc(64 * MIB, '[]'))

/** Answers that are wrong before their JSON is: what a server writes on a connection. */
export const WIRES: { readonly [what: string]: (socket: Socket) => unknown } = {
  'a body without an end': socket => {
    socket.write(head('200 OK', 'content-type: application/json'))
    return forever(socket, '["'.padEnd(65_536, 'x'))
  },
  'a list without an end': socket => {
    socket.write(head('200 OK', 'content-type: application/json') + '{"workflow_runs":[')
    return forever(socket, '{"id":1},'.repeat(7_000))
  },
  'headers without an end': socket => {
    socket.write('HTTP/1.1 200 OK\r\n')
    return forever(socket, `x-${'y'.repeat(100)}: z\r\n`.repeat(100))
  },
  'a length that is too long': socket => socket.end(head('200 OK', 'content-length: 999999999') + '[]'),
  'a length that is too short': socket => socket.end(head('200 OK', 'content-length: 1') + '[{"id":1}]'),
  'two lengths': socket => socket.end(head('200 OK', 'content-length: 2', 'content-length: 4') + '[]{}'),
  'a length and pieces': socket =>
    socket.end(head('200 OK', 'content-length: 2', 'transfer-encoding: chunked') + '0\r\n\r\n[]'),
  'a negative length': socket => socket.end(head('200 OK', 'content-length: -1') + '[]'),
  'a bomb of gzip': socket => {
    socket.write(head('200 OK', 'content-encoding: gzip', `content-length: ${bomb.length}`, 'connection: close'))
    socket.end(bomb)
  },
  'an unknown encoding': socket => socket.end(head('200 OK', 'content-encoding: br, zstd', 'content-length: 2') + '[]'),
  'a switch of the protocol': socket =>
    socket.end(head('101 Switching Protocols', 'upgrade: x', 'connection: upgrade')),
  'an unknown status': socket => socket.end(head('999 \u009b31m', 'content-length: 2') + '[]'),
  'no status': socket => socket.end('\u0000\u0001\u0002'),
  nothing: socket => socket.end(),
  'a reset': socket => socket.resetAndDestroy(),
  'bytes that are no text': socket => {
    socket.write(head('200 OK', 'content-length: 4', 'content-type: application/json'))
    socket.end(Buffer.from([0x22, 0xff, 0xc0, 0x22]))
  },
  'a page': socket => socket.end(head('200 OK', 'content-type: text/html') + '<html><script>alert(1)</script>'),
  'a refusal nested deep': socket => {
    const body = `{"message":${deepObject(20_000)},"error":${deep(20_000)}}`
    socket.end(head('403 Forbidden', `content-length: ${body.length}`, 'connection: close') + body)
  },
  'a refusal with hostile words': socket => {
    const words = HOSTILE_TEXTS.join(' ').toWellFormed()
    const body = Buffer.from(JSON.stringify({ message: words, error: words, error_description: words }))
    socket.write(head('422 No', `content-length: ${body.length}`, 'connection: close'))
    socket.end(body)
  },
  'a wait of a thousand years': socket =>
    socket.end(head('429 Slow', 'retry-after: 31536000000', 'x-ratelimit-reset: 99999999999999', 'content-length: 0')),
  ...Object.fromEntries(
    [
      'file:///etc/passwd',
      'javascript:1',
      'http://169.254.169.254/',
      'http://[::ffff:169.254.169.254]/',
      '//',
      '\u009b',
    ].map(to => [
      `a redirect to ${to}`,
      (socket: Socket) => socket.end(head('302 Found', `location: ${to}`, 'content-length: 0')),
    ]),
  ),
  'a redirect to itself': socket => socket.end(head('307 Again', 'location: /again', 'content-length: 0')),
}

/** Answers that end only when the reader ends them. */
export const ENDLESS: typeof WIRES = {
  'pieces without an end': socket => {
    socket.write(head('200 OK', 'transfer-encoding: chunked'))
    return forever(socket, '1\r\n \r\n'.repeat(10_000))
  },
  'statuses before the status': socket => forever(socket, head('103 Early Hints', 'link: </>').repeat(500)),
  'a byte a second': socket => {
    socket.write(head('200 OK', 'content-length: 100000'))
    const timer = setInterval(() => socket.write('['), 1_000)
    socket.on('close', () => clearInterval(timer))
  },
}

/** A server that answers what it is set to, whatever is asked. */
export const hostileServer = async (t: Pick<Test, 'teardown'>) => {
  const state = { asked: 0, answer: (socket: Socket): unknown => socket.end() }
  const open = new Set<Socket>()
  const server = createServer(socket => {
    open.add(socket)
    socket.on('error', () => {}).on('close', () => open.delete(socket))
    socket.on('data', (piece: Buffer) => {
      // A request here fits into one piece; the body of another may follow its head.
      if (!/^[A-Z]+ \S+ HTTP\/1\.1\r\n/.test(piece.toString('latin1'))) return
      state.asked += 1
      state.answer(socket)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of open) socket.destroy()
  })
  return Object.assign(state, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Answers with this JSON. */
    json: (text: string, status = '200 OK') => {
      const body = Buffer.from(text)
      state.answer = socket => {
        socket.write(head(status, 'content-type: application/json', `content-length: ${body.length}`))
        socket.write(body)
      }
    },
  })
}

/** What is wrong with a value that was read from an answer: it is shown, stored and sent on as JSON. */
export const faultsOf = (value: unknown): string[] => {
  const faults: string[] = []
  const walk = (each: unknown, path: string): void => {
    if (typeof each === 'string') {
      const unshown = UNSHOWN.exec(each)
      if (unshown) faults.push(`${path}: U+${unshown[0].codePointAt(0)!.toString(16)}`)
      if (/url$/i.test(path) && each !== '' && !/^https?:\/\//.test(each)) faults.push(`${path}: ${each.slice(0, 60)}`)
    } else if (typeof each === 'number') {
      if (!Number.isFinite(each)) faults.push(`${path}: ${each}`)
    } else if (typeof each === 'function') faults.push(`${path}: a function`)
    else if (each instanceof Map) for (const [key, inner] of each) (walk(key, path), walk(inner, `${path}.value`))
    else if (typeof each === 'object' && each !== null)
      for (const [key, inner] of Object.entries(each)) (walk(key, `${path} key`), walk(inner, `${path}.${key}`))
  }
  try {
    walk(value, '')
  } catch (error) {
    faults.push(String(error))
  }
  return faults
}
