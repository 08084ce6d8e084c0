import t from 'tap'
import { NotGguf, readGguf } from '../../../plugins/endpoints/local/gguf.js'
import { cacheBytes, neededBytes, windowsOf } from '../../../plugins/endpoints/local/need.js'
import { SMALL_FIELDS, weightsOf } from './weights.js'

const read = (bytes: Buffer, size = bytes.length) =>
  readGguf(async (offset, length) => bytes.subarray(offset, offset + length), size)

t.test('the head of a model says what it needs memory for', async t => {
  t.same(await read(weightsOf()), {
    blocks: 4,
    kvHeads: 2,
    keyLength: 16,
    valueLength: 16,
    contextLength: 16384,
    vocabulary: 100,
  })
  t.match(await read(weightsOf(SMALL_FIELDS, 4096, 2)), { blocks: 4 })
})

t.test('layers of different kinds count as they are', async t => {
  const shape = await read(
    weightsOf([
      ...SMALL_FIELDS.filter(([name]) => name !== 'llama.attention.head_count_kv'),
      ['llama.attention.head_count_kv', 4, [2, 0, 2, 2]],
      ['llama.attention.key_length', 4, 32],
      ['llama.attention.sliding_window', 4, 1024],
      ['llama.attention.sliding_window_pattern', 7, [1, 0, 1, 0]],
      ['llama.ssm.inner_size', 4, 10],
      ['llama.ssm.state_size', 4, 4],
      ['llama.ssm.conv_kernel', 4, 3],
    ]),
  )
  const perToken = (32 + 16) * 2 * 2
  const state = 4 * (10 * 4 + 2 * 10)
  t.equal(cacheBytes(shape, 4096), perToken * 1024 + state + perToken * 1024 + perToken * 4096)
})

t.test('the bytes of a window are weights, cache and work', t => {
  const shape = { blocks: 4, kvHeads: 2, keyLength: 16, valueLength: 16, contextLength: 16384, vocabulary: 100 }
  t.equal(neededBytes(shape, 1000, 4096), 1000 + 32 * 2 * 2 * 4096 * 4 + 256 * 1024 * 1024 + 2048 * 100)
  t.same(windowsOf(shape), [4096, 8192, 16384])
  t.same(windowsOf({ contextLength: 2048 }), [2048])
  t.end()
})

t.test('a file that is no model, or names more than is read, is refused', async t => {
  const good = weightsOf()
  const patched = (at: number, value: bigint | Buffer) => {
    const bytes = Buffer.from(good)
    if (typeof value === 'bigint') bytes.writeBigUInt64LE(value, at)
    else value.copy(bytes, at)
    return bytes
  }
  const hostile: [string, Buffer, RegExp][] = [
    ['nothing', Buffer.alloc(0), /ends in the middle/],
    ['a page', Buffer.from('<!doctype html>'.repeat(9)), /does not begin with GGUF/],
    ['a version', weightsOf(SMALL_FIELDS, 10, 9), /version 9/],
    ['tensors', patched(8, 2n ** 63n), /tensors/],
    ['fields', patched(16, 2n ** 60n), /fields/],
    ['a long name', patched(24, 2n ** 40n), /characters/],
    ['half of it', good.subarray(0, 200), /ends in the middle/],
    ['no architecture', weightsOf(SMALL_FIELDS.slice(1)), /architecture/],
    ['no layers', weightsOf(SMALL_FIELDS.filter(([name]) => !name.endsWith('block_count'))), /block_count/],
    ['many layers', weightsOf([...SMALL_FIELDS, ['llama.block_count', 4, 4_000_000_000]]), /4000000000 layers/],
    ['an unknown kind', weightsOf([...SMALL_FIELDS, ['x', 99, 1]]), /unknown kind 99/],
    ['no data', weightsOf(SMALL_FIELDS, 0), /before its last tensor/],
  ]
  for (const [name, bytes, words] of hostile)
    await t.rejects(read(bytes), { constructor: NotGguf, message: words }, name)
})
