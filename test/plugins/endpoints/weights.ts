import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

type Field = [name: string, kind: number, value: number | string | readonly number[] | readonly string[]]

const number = (kind: number, value: number): Buffer => {
  const bytes = Buffer.alloc(kind === 10 ? 8 : kind === 7 ? 1 : 4)
  if (kind === 10) bytes.writeBigUInt64LE(BigInt(value))
  else if (kind === 7) bytes.writeUInt8(value)
  else bytes.writeUInt32LE(value)
  return bytes
}
const long = (value: number | bigint): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}
const text = (value: string): Buffer => Buffer.concat([long(Buffer.byteLength(value)), Buffer.from(value)])
const fieldOf = ([name, kind, value]: Field): Buffer => {
  if (!Array.isArray(value)) {
    const bytes = typeof value === 'string' ? text(value) : number(kind, value as number)
    return Buffer.concat([text(name), number(4, kind), bytes])
  }
  const items = value.map(each => (typeof each === 'string' ? text(each) : number(kind, each as number)))
  return Buffer.concat([text(name), number(4, 9), number(4, kind), long(value.length), ...items])
}

/** The fields of a small model: 4 layers, 2 heads of keys and values of 16 numbers, 100 tokens. */
export const SMALL_FIELDS: readonly Field[] = [
  ['general.architecture', 8, 'llama'],
  ['llama.block_count', 4, 4],
  ['llama.context_length', 4, 16384],
  ['llama.embedding_length', 4, 64],
  ['llama.attention.head_count', 4, 4],
  ['llama.attention.head_count_kv', 4, 2],
  ['tokenizer.ggml.tokens', 8, Array.from({ length: 100 }, (_, at) => `token ${at}`)],
]

/** A file of weights in the format GGUF, with bytes of data behind its head. */
export const weightsOf = (fields: readonly Field[] = SMALL_FIELDS, data = 4096, version = 3): Buffer =>
  Buffer.concat([
    Buffer.from('GGUF'),
    number(4, version),
    long(1),
    long(fields.length),
    ...fields.map(fieldOf),
    text('output.weight'),
    number(4, 2),
    long(64),
    long(16),
    number(4, 0),
    long(0),
    Buffer.alloc(data, 7),
  ])

/** What a server of files does with the next requests. */
export interface FileServerScript {
  bytes: Buffer
  etag: string
  /** Ends each answer after so many bytes. */
  breaksAfter?: number
  /** Sends this much, then waits. */
  holdsAfter?: number
  /** It knows no ranges. */
  whole?: boolean
  /** It answers another part than was asked for. */
  lies?: boolean
}

/** A server of one file, with the ranges it was asked for. */
export const startFileServer = async (t: Pick<Test, 'teardown'>, bytes: Buffer) => {
  const script: FileServerScript = { bytes, etag: '"one"' }
  const asked: { range?: string; ifRange?: string; status: number }[] = []
  const server = createServer((request, response) => {
    const { range } = request.headers
    const ifRange = request.headers['if-range'] as string | undefined
    const { bytes: all, etag } = script
    const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(range ?? '') ?? []
    const part = first !== undefined && !script.whole && (ifRange === undefined || ifRange === etag)
    const from = part ? Number(first) + (script.lies ? 1 : 0) : 0
    const to = part && last ? Math.min(Number(last), all.length - 1) : all.length - 1
    const status = part ? 206 : 200
    asked.push({ status, ...(range && { range }), ...(ifRange && { ifRange }) })
    response.writeHead(status, {
      etag,
      'content-length': to + 1 - from,
      ...(part && { 'content-range': `bytes ${from}-${to}/${all.length}` }),
    })
    const sent = all.subarray(from, to + 1)
    if (script.holdsAfter !== undefined) return void response.write(sent.subarray(0, script.holdsAfter))
    if (script.breaksAfter === undefined) return void response.end(sent)
    response.write(sent.subarray(0, script.breaksAfter), () => response.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/w.gguf`, script, asked }
}

/** The entry of a file of weights in a list of local models. */
export const entryOf = (url: string, bytes: Buffer, more: object = {}) => ({
  model: 'small',
  label: 'Small (made by the test)',
  tier: 'instant',
  url,
  sizeBytes: bytes.length,
  sha256: createHash('sha256').update(bytes).digest('hex'),
  ...more,
})
