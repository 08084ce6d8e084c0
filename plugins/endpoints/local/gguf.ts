import type { ModelShape } from './contract.js'

/** Reads so many bytes of a file from an offset; fewer where it ends. */
export type ReadBytes = (offset: number, length: number) => Promise<Buffer>

/** A file that is no model, or not one that can be read: a sentence. */
export class NotGguf extends Error {}

const CHUNK = 1024 * 1024
const MOST_HEAD = 96 * 1024 * 1024
const MOST_FIELDS = 20_000
const MOST_ITEMS = 4_000_000
const MOST_TENSORS = 100_000
const MOST_TEXT = 16 * 1024 * 1024
/** Numbers of which all are read, rather than how many there are. */
const MOST_KEPT = 10_000

/** The kinds of a value, by their number in the file. */
const SIZES: readonly number[] = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8]
const TEXT = 8
const LIST = 9
const BOOL = 7

/** Bytes of a file in order, read in pieces and up to a limit. */
class Head {
  readonly #read: ReadBytes
  #piece = Buffer.alloc(0)
  #at = 0
  #offset = 0

  constructor(read: ReadBytes) {
    this.#read = read
  }

  get position(): number {
    return this.#offset + this.#at
  }

  async take(length: number): Promise<Buffer> {
    if (this.position + length > MOST_HEAD) throw new NotGguf('its head is larger than 96 MiB')
    while (this.#piece.length - this.#at < length) {
      const rest = this.#piece.subarray(this.#at)
      const next = await this.#read(this.#offset + this.#piece.length, Math.max(CHUNK, length - rest.length))
      if (next.length === 0) throw new NotGguf('it ends in the middle of its head')
      this.#offset += this.#at
      this.#at = 0
      this.#piece = Buffer.concat([rest, next])
    }
    this.#at += length
    return this.#piece.subarray(this.#at - length, this.#at)
  }

  async skip(length: number): Promise<void> {
    for (let left = length; left > 0; left -= CHUNK) await this.take(Math.min(left, CHUNK))
  }

  async number32(): Promise<number> {
    return (await this.take(4)).readUInt32LE()
  }

  /** A count or a length: refused where it is beyond what is read. */
  async count(most: number, what: string): Promise<number> {
    const found = (await this.take(8)).readBigUInt64LE()
    if (found > BigInt(most)) throw new NotGguf(`it names ${found} ${what}, and ${most} are read at most`)
    return Number(found)
  }

  async text(): Promise<string> {
    return (await this.take(await this.count(MOST_TEXT, 'characters'))).toString('utf8')
  }
}

type Value = number | string | boolean | readonly (number | boolean)[] | { readonly items: number }

const scalar = (kind: number, bytes: Buffer): number | boolean => {
  switch (kind) {
    case 0:
      return bytes.readUInt8()
    case 1:
      return bytes.readInt8()
    case 2:
      return bytes.readUInt16LE()
    case 3:
      return bytes.readInt16LE()
    case 4:
      return bytes.readUInt32LE()
    case 5:
      return bytes.readInt32LE()
    case 6:
      return bytes.readFloatLE()
    case BOOL:
      return bytes.readUInt8() !== 0
    case 10:
      return Number(bytes.readBigUInt64LE())
    case 11:
      return Number(bytes.readBigInt64LE())
    default:
      return bytes.readDoubleLE()
  }
}

const valueOf = async (head: Head, kind: number): Promise<Value> => {
  if (kind === TEXT) return head.text()
  if (kind === LIST) return listOf(head)
  const size = SIZES[kind]
  if (!size) throw new NotGguf(`it has a value of the unknown kind ${kind}`)
  return scalar(kind, await head.take(size))
}

const listOf = async (head: Head): Promise<Value> => {
  const kind = await head.number32()
  const items = await head.count(MOST_ITEMS, 'items of a list')
  if (kind === TEXT) {
    for (let at = 0; at < items; at++) await head.skip(await head.count(MOST_TEXT, 'characters'))
    return { items }
  }
  const size = SIZES[kind]
  if (!size) throw new NotGguf(`it has a list of the unknown kind ${kind}`)
  if (items > MOST_KEPT) {
    await head.skip(items * size)
    return { items }
  }
  const values: (number | boolean)[] = []
  for (let at = 0; at < items; at++) values.push(scalar(kind, await head.take(size)))
  return values
}

/**
 * Reads the head of a model's file: what it needs memory for.
 *
 * @param size The size of the whole file, in which every tensor must begin.
 * @throws NotGguf
 */
export const readGguf = async (read: ReadBytes, size: number): Promise<ModelShape> => {
  const head = new Head(read)
  if ((await head.take(4)).toString('latin1') !== 'GGUF') throw new NotGguf('it does not begin with GGUF')
  const version = await head.number32()
  if (version !== 2 && version !== 3) throw new NotGguf(`it has version ${version}; 2 and 3 are read`)
  const tensors = await head.count(MOST_TENSORS, 'tensors')
  const fields = await head.count(MOST_FIELDS, 'fields')
  const values = new Map<string, Value>()
  for (let at = 0; at < fields; at++) {
    const name = await head.text()
    values.set(name, await valueOf(head, await head.number32()))
  }
  let last = 0n
  for (let at = 0; at < tensors; at++) {
    await head.text()
    await head.skip(8 * (await smallCount(head)) + 4)
    const offset = (await head.take(8)).readBigUInt64LE()
    if (offset > last) last = offset
  }
  if (tensors > 0 && BigInt(head.position) + last >= BigInt(size))
    throw new NotGguf('it ends before its last tensor begins')
  return shapeOf(values)
}

const smallCount = async (head: Head): Promise<number> => {
  const count = await head.number32()
  if (count > 8) throw new NotGguf(`it has a tensor of ${count} dimensions`)
  return count
}

/** The numbers of a model by the names that its architecture gives them. */
const shapeOf = (values: ReadonlyMap<string, Value>): ModelShape => {
  const arch = values.get('general.architecture')
  if (typeof arch !== 'string') throw new NotGguf('it does not say what architecture it has')
  const number = (name: string): number | undefined => {
    const found = values.get(`${arch}.${name}`)
    return typeof found === 'number' && Number.isFinite(found) && found >= 0 && found < 2 ** 32 ? found : undefined
  }
  const needed = (name: string): number => {
    const found = number(name)
    if (!found) throw new NotGguf(`it does not say ${arch}.${name}`)
    return found
  }
  const list = (name: string): readonly (number | boolean)[] | undefined => {
    const found = values.get(`${arch}.${name}`)
    return Array.isArray(found) ? found : undefined
  }
  const blocks = needed('block_count')
  if (blocks > 10_000) throw new NotGguf(`it names ${blocks} layers`)
  const heads = number('attention.head_count') ?? Math.max(0, ...(list('attention.head_count') ?? []).map(Number))
  const perHead = heads > 0 ? Math.floor(needed('embedding_length') / heads) : 0
  const tokens = values.get('tokenizer.ggml.tokens')
  const [window, pattern] = [number('attention.sliding_window'), list('attention.sliding_window_pattern')]
  const state = stateBytes(number)
  return {
    blocks,
    kvHeads:
      list('attention.head_count_kv')?.map(each => Math.max(0, Number(each)))
      ?? number('attention.head_count_kv')
      ?? heads,
    keyLength: number('attention.key_length') ?? perHead,
    valueLength: number('attention.value_length') ?? perHead,
    contextLength: needed('context_length'),
    vocabulary:
      number('vocab_size') ?? (Array.isArray(tokens) ? tokens.length : ((tokens as { items?: number })?.items ?? 0)),
    ...(window && pattern && { slidingWindow: window, sliding: pattern.map(Boolean) }),
    ...(state > 0 && { stateBytes: state }),
  }
}

/** What a recurrent layer holds, in numbers of 32 bits. */
const stateBytes = (number: (name: string) => number | undefined): number => {
  const [inner, state] = [number('ssm.inner_size') ?? 0, number('ssm.state_size') ?? 0]
  const [kernel, groups] = [number('ssm.conv_kernel') ?? 1, number('ssm.group_count') ?? 0]
  return 4 * (inner * state + (kernel - 1) * (inner + 2 * groups * state))
}
