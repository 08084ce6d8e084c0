import fs, { readFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import t from 'tap'
import { JournalStore } from '../../../../sdk/node/journal/journal-store.js'
import { folderOf } from '../../../support/daemon.js'

/** The free bytes for the next write; then the disk is full, once. */
let room = Infinity
const { writeSync } = fs
Object.assign(fs, {
  writeSync: (fd: number, bytes: Uint8Array, from: number, length: number, at: number) => {
    const wrote = writeSync(fd, bytes, from, Math.min(length, room), at)
    if (room === Infinity) return wrote
    room = Infinity
    throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
  },
})
syncBuiltinESMExports()

const entry = (n: number) => ({ n, text: 'x'.repeat(20) })
const entries = (from: number, count: number) => Array.from({ length: count }, (_, at) => entry(from + at))

for (const [what, most] of [
  ['nothing', 0],
  ['a part', 30],
  ['some whole ones', 500],
] as const) {
  t.test(
    `entries of which ${what} was written are in no answer, of a file or of memory, and the next ones take `
      + 'their place',
    async t => {
      const folder = join(folderOf(t), 'journals')
      const store = new JournalStore(folder)
      t.teardown(() => store.shutdown())
      const stop = new AbortController()
      await store.append('a/log', [entry(1)])
      const [seen, pumped]: [unknown[], Buffer[]] = [[], []]
      const following = (async () => {
        for await (const value of store.follow('a/log', 0, stop.signal)) seen.push(value)
      })()
      const out = new Writable({ write: (bytes: Buffer, _, done) => (pumped.push(bytes), done()) })
      const pumping = store.pump('a/log', 0, out, stop.signal)
      room = most
      await t.rejects(store.append('a/log', entries(100, 20)), /the disk is full/)
      t.same(await store.read('a/log'), [entry(1)])
      const kept = [entry(1), entry(2)]
      await store.append('a/log', [entry(2)])
      t.same(await store.read('a/log'), kept)
      const again = new JournalStore(folder)
      t.same(await again.read('a/log'), kept, 'the next daemon sees the same')
      await again.shutdown()
      const file = readFileSync(join(folder, 'a/log.jsonl'))
      while (seen.length < 2 || Buffer.concat(pumped).length < file.length)
        await new Promise(resolve => setImmediate(resolve))
      t.same(seen, kept, 'followers see the same')
      t.equal(Buffer.concat(pumped).toString(), file.toString(), 'readers of stored bytes see the same')
      stop.abort()
      await Promise.all([following, pumping])
    },
  )
}
