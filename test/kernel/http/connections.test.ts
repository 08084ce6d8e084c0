import { EventEmitter } from 'node:events'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import t from 'tap'
import { Connections } from '../../../kernel/http/connections.js'

/** A fake connection. */
class Line extends EventEmitter {
  destroyed = false

  constructor(readonly remoteAddress: string) {
    super()
  }

  destroy(): void {
    this.destroyed = true
    this.emit('close')
  }
}

const counting = () => {
  const connections = new Connections()
  const server = new EventEmitter()
  connections.watch(server as Server)
  return {
    open: (count = 1, address = '127.0.0.1'): Line[] =>
      Array.from({ length: count }, () => {
        const line = new Line(address)
        server.emit('connection', line)
        return line
      }),
    keep: (line: Line | undefined, credential: string) => connections.keep(line as unknown as Socket, credential),
    end: (credential: string) => connections.end(credential),
  }
}

const closed = (lines: readonly Line[]): number => lines.filter(({ destroyed }) => destroyed).length

t.test('a new connection closes the oldest of 2,048 without a credential, also from this machine', async t => {
  const { open } = counting()
  const lines = open(2_048)
  t.equal(closed(lines), 0)
  open()
  t.same([closed(lines), lines[0]!.destroyed], [1, true])
  lines[5]!.destroy()
  open()
  t.equal(closed(lines), 2, 'a closed one does not count')
})

t.test('the oldest of 256 from one remote address is closed, and none of another', async t => {
  const { open } = counting()
  const [near, other, lines] = [open(300), open(256, '203.0.113.1'), open(256, '203.0.113.9')]
  open(2, '203.0.113.9')
  t.same([closed(near), closed(other), closed(lines), lines[1]!.destroyed], [0, 0, 2, true])
})

t.test('connections with a valid credential are kept, however many others arrive', async t => {
  const { open, keep } = counting()
  const [one, far] = [open()[0]!, open(1, '203.0.113.9')[0]!]
  keep(one, 'a')
  keep(far, 'a')
  open(5_000)
  open(500, '203.0.113.9')
  t.same([one.destroyed, far.destroyed], [false, false])
})

t.test('128 connections of one credential are kept, so that it cannot displace another', async t => {
  const { open, keep } = counting()
  const [lines, other] = [open(200), open()[0]!]
  for (const line of lines) keep(line, 'a')
  keep(other, 'b')
  for (const line of lines) keep(line, 'a')
  open(2_048)
  t.same([closed(lines), closed(lines.slice(0, 128)), other.destroyed], [72, 0, false])
  lines[0]!.destroy()
  const [next] = open()
  keep(next, 'a')
  open(2_048)
  t.equal(next!.destroyed, false, 'a closed one frees its place')
})

t.test('a connection counts for its last credential, and for none when that has ended', async t => {
  const { open, keep, end } = counting()
  const [line] = open()
  keep(line, 'a')
  keep(line, 'b')
  end('a')
  open(2_048)
  t.equal(line!.destroyed, false)
  end('b')
  open(2_047)
  t.equal(line!.destroyed, false, 'then it is the newest')
  open()
  t.equal(line!.destroyed, true)
})
