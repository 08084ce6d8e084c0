import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { deflateSync } from 'node:zlib'
import type { Test } from 'tap'
import { drainedOrClosed } from '../../../sdk/node/programs/drained-or-closed.js'

/** The commit that the server says it has. */
const TIP = 'a'.repeat(40)
const BLOB = 48 * 1024
const EVERY_MS = 250

/** One line of git's protocol (gitprotocol-common(5)). */
const line = (data: string | Buffer): Buffer => {
  const bytes = Buffer.from(data)
  return Buffer.concat([Buffer.from((bytes.length + 4).toString(16).padStart(4, '0')), bytes])
}
const END = Buffer.from('0000')
const NEXT = Buffer.from('0001')

/** A blob in a pack (gitformat-pack(5)) that does not get smaller. */
const blob = Buffer.concat([
  Buffer.from([0xb0 | (BLOB & 15), 0x80 | ((BLOB >> 4) & 127), BLOB >> 11]),
  deflateSync(randomBytes(BLOB), { level: 0 }),
])

/** Writes a byte from time to time, for as long as somebody reads. */
const drip = (text: string, write: (byte: string) => unknown, isOver: () => boolean): void => {
  let at = 0
  const timer = setInterval(() => {
    if (isOver()) return clearInterval(timer)
    return void write(text[at++ % text.length]!)
  }, EVERY_MS)
}

/** Answers of a git server that does not come to an end (gitprotocol-v2(5)), by what it does. */
const WAYS: { readonly [way: string]: (asked: IncomingMessage, answer: ServerResponse, body: string) => unknown } = {
  'headers that drip': (_, answer) => {
    answer.socket!.write('HTTP/1.1 200 OK\r\n')
    drip(
      'x-a: b\r\n',
      byte => answer.socket?.write(byte),
      () => answer.socket?.destroyed ?? true,
    )
  },
  'a list of refs that drips': (_, answer) => {
    answer.writeHead(200, { 'content-type': 'application/x-git-upload-pack-advertisement' })
    drip(
      '001e# service=git-upload-pack\n0000000eversion 2\n'.repeat(9),
      byte => answer.write(byte),
      () => answer.destroyed,
    )
  },
  'progress without an end': (asked, answer, body) => {
    if (!asPack(asked, answer, body)) return
    const timer = setInterval(() => {
      if (answer.destroyed) clearInterval(timer)
      else answer.write(line('\u0002working\r'))
    }, EVERY_MS)
  },
  'a pack without an end': async (asked, answer, body) => {
    if (!asPack(asked, answer, body)) return
    const head = Buffer.alloc(12)
    head.write('PACK')
    head.writeUInt32BE(2, 4)
    // 4.8 GB; git asks for memory for each at once.
    head.writeUInt32BE(100_000, 8)
    answer.write(line(Buffer.concat([Buffer.from([1]), head])))
    const piece = line(Buffer.concat([Buffer.from([1]), blob]))
    while (!answer.destroyed) if (!answer.write(piece)) await drainedOrClosed(answer)
  },
}

/** Answers what comes before a pack; true: the pack is next. */
const asPack = ({ method }: IncomingMessage, answer: ServerResponse, body: string): boolean => {
  if (method === 'GET') {
    answer.writeHead(200, { 'content-type': 'application/x-git-upload-pack-advertisement' })
    const able = ['version 2\n', 'ls-refs\n', 'fetch=shallow\n', 'object-format=sha1\n'].map(line)
    answer.end(Buffer.concat([line('# service=git-upload-pack\n'), END, ...able, END]))
    return false
  }
  answer.writeHead(200, { 'content-type': 'application/x-git-upload-pack-result' })
  if (body.includes('command=ls-refs')) {
    const refs = [`${TIP} HEAD symref-target:refs/heads/main\n`, `${TIP} refs/heads/main\n`].map(line)
    answer.end(Buffer.concat([...refs, END]))
    return false
  }
  if (body.includes('deepen')) answer.write(Buffer.concat([line('shallow-info\n'), line(`shallow ${TIP}`), NEXT]))
  answer.write(line('packfile\n'))
  return true
}

/** A git server that answers in one of these ways. */
export const hostileGit = async (t: Pick<Test, 'teardown'>, way: string): Promise<string> => {
  const server = createServer((asked, answer) => {
    answer.on('error', () => {})
    void (async () => {
      let body = ''
      for await (const piece of asked) body += String(piece)
      await WAYS[way]!(asked, answer, body)
    })().catch(() => answer.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => (server.closeAllConnections(), server.close()))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/x.git`
}
