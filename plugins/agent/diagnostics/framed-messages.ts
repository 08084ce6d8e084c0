import { NotTheProtocol } from '../../../sdk/node/programs/piped-process.js'

const MOST_HEADER = 4_096
const MOST_MESSAGE = 8 * 1024 * 1024
const END = '\r\n\r\n'

/** A message of a language server, with the header that it is sent with. */
export const framedMessage = (message: object): string => {
  const text = JSON.stringify({ jsonrpc: '2.0', ...message })
  return `Content-Length: ${Buffer.byteLength(text)}${END}${text}`
}

/** The messages of a language server; throws on one that is too long or none. */
export async function* framedMessages(output: AsyncIterable<Buffer>): AsyncGenerator<object, void> {
  let parts: Buffer[] = []
  let [bytes, wanted] = [0, 0]
  for await (const piece of output) {
    parts.push(piece)
    bytes += piece.length
    while (bytes >= Math.max(wanted, 1)) {
      const all = parts.length === 1 ? parts[0]! : Buffer.concat(parts)
      const head = all.subarray(0, MOST_HEADER).indexOf(END)
      if (head < 0 && all.length > MOST_HEADER) throw new NotTheProtocol('wrote a header without an end')
      const length = head < 0 ? 0 : lengthIn(all.toString('latin1', 0, head))
      wanted = head < 0 ? all.length + 1 : head + END.length + length
      parts = [all]
      if (all.length < wanted) break
      const message = parsed(all.toString('utf8', wanted - length, wanted))
      parts = [all.subarray(wanted)]
      bytes = all.length - wanted
      wanted = 0
      yield message
    }
  }
}

const lengthIn = (header: string): number => {
  const length = Number(/^content-length: *(\d{1,12})\s*$/im.exec(header)?.[1] ?? NaN)
  if (!(length <= MOST_MESSAGE)) throw new NotTheProtocol(`wrote a message of ${length} bytes`)
  return length
}

const parsed = (text: string): object => {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch {
    // Told below.
  }
  throw new NotTheProtocol('wrote a message that is no JSON object')
}
