import type { Readable, Writable } from 'node:stream'
import type { ConnectOverCDPTransport } from 'playwright-core'

/** The longest message accepted from a browser; pages decide how large pictures and texts are. */
const MOST_BYTES = 128 * 1024 * 1024

/** Messages of the DevTools protocol over two pipes: one JSON value and a zero byte each. */
export const pipeTransport = (to: Writable, from: Readable): ConnectOverCDPTransport => {
  let pieces: Buffer[] = []
  let bytes = 0
  const transport: ConnectOverCDPTransport = {
    send: message => void to.write(`${JSON.stringify(message)}\0`),
    close: () => void to.end(),
  }
  const take = (piece: Buffer) => {
    pieces.push(piece)
    bytes += piece.length
    if (bytes > MOST_BYTES) from.destroy()
  }
  const whole = () => {
    const text = Buffer.concat(pieces).toString()
    pieces = []
    bytes = 0
    transport.onmessage?.(JSON.parse(text) as object)
  }
  from.on('data', (data: Buffer) => {
    let start = 0
    for (let end = data.indexOf(0); end >= 0; end = data.indexOf(0, start)) {
      take(data.subarray(start, end))
      whole()
      start = end + 1
    }
    if (start < data.length) take(data.subarray(start))
  })
  let over = false
  const close = () => {
    if (over) return
    over = true
    to.end()
    transport.onclose?.()
  }
  from.on('close', close).on('error', close)
  to.on('error', close)
  return transport
}
