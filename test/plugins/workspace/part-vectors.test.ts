import { closeSync, openSync, readFileSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { chunksOf } from '../../../plugins/workspace/search/index/chunks.js'
import type { IndexStore } from '../../../plugins/workspace/search/index/index-store.js'
import { partKey } from '../../../plugins/workspace/search/index/part-key.js'
import { unplacedTexts } from '../../../plugins/workspace/search/index/part-texts.js'
import { PartVectors } from '../../../plugins/workspace/search/index/part-vectors.js'

const MODEL = 'endpoint/home:e'
const EVERYTHING = { dir: '.', patterns: { include: [], exclude: [] }, reach: undefined } as never

/** An index of files of one part each. */
const indexOf = (files: { readonly [path: string]: string }): IndexStore => {
  const rows = Object.entries(files).flatMap(([path, text], id) =>
    chunksOf(text, []).map(({ line, lines, body }) => ({
      ...{ id, path, class: 'source', line, lines, part: partKey(path, body) },
    })),
  )
  return { all: () => rows } as unknown as IndexStore
}

const FILES = Object.fromEntries(
  Array.from({ length: 400 }, (_, at) => [`src/${at}.ts`, `export const a${at} = ${at}\n`]),
)
const vectorAt = (at: number) => Array.from({ length: 64 }, (_, nth) => Math.sin(at * 64 + nth))

/** Vectors of all files, on the disk. */
const kept = (path: string): PartVectors => {
  const vectors = new PartVectors(indexOf(FILES), path)
  const placed = vectors.unplaced(MODEL, 1000).map(({ key }, at) => ({ key, vector: vectorAt(at) }))
  vectors.place(MODEL, placed)
  return vectors
}

t.test('a damaged file of vectors is dropped, and the model is asked again', t => {
  const damages: { readonly [what: string]: (path: string) => void } = {
    'other bytes': path => writeFileSync(path, 'no database at all, of some length'),
    'damaged pages': path => {
      const bytes = readFileSync(path)
      const file = openSync(path, 'r+')
      writeSync(file, Buffer.alloc(bytes.length - 4096 * 2, 0xab), 0, undefined, 4096 * 2)
      closeSync(file)
    },
    'half of it': path => truncateSync(path, Math.floor(readFileSync(path).length / 8192) * 4096),
  }
  for (const [what, damage] of Object.entries(damages)) {
    const path = join(t.testdir({}), 'vectors.sqlite')
    kept(path)
    t.same(new PartVectors(indexOf(FILES), path).learned(MODEL), { parts: 400, known: 400, numbers: 64 })
    const db = new DatabaseSync(path)
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    damage(path)
    const vectors = new PartVectors(indexOf(FILES), path)
    t.match(vectors.learned(MODEL), { parts: 400, known: 0 }, what)
    vectors.place(MODEL, [{ key: vectors.unplaced(MODEL, 1)[0]!.key, vector: vectorAt(1) }])
    t.equal(new PartVectors(indexOf(FILES), path).learned(MODEL).known, 1, `${what}: it is kept again`)
  }
  t.end()
})

t.test('a file that cannot be used is not taken for a damage of the index, nor its vectors for unknown', t => {
  const path = join(t.testdir({ 'vectors.sqlite': {} }), 'vectors.sqlite')
  const vectors = new PartVectors(indexOf(FILES), path)
  for (let times = 0; times < 2; times++)
    t.throws(() => vectors.learned(MODEL), { message: 'vectors.sqlite cannot be used' })
  t.end()
})

t.test('a model of another length of vectors begins anew, also when it is told to', t => {
  const vectors = kept(join(t.testdir({}), 'vectors.sqlite'))
  t.equal(vectors.nearness(MODEL, vectorAt(3), EVERYTHING)?.size, 400)
  vectors.forget(MODEL)
  t.same(vectors.learned(MODEL), { parts: 400, known: 0 })
  const [part] = vectors.unplaced(MODEL, 1)
  vectors.place(MODEL, [{ key: part!.key, vector: [1, 2] }])
  t.same(vectors.learned(MODEL), { parts: 400, known: 1, numbers: 2 })
  t.end()
})

t.test('of a long part the first 6,000 bytes are sent, whole characters', t => {
  const texts = {
    'a.txt': 'a'.repeat(9_000),
    'b.txt': `${'語'.repeat(500)}\n`.repeat(12),
    'c.txt': `${'🦀'.repeat(400)}\n`.repeat(20),
    'd.txt': 'short\n',
  }
  const root = t.testdir(texts)
  const vectors = new PartVectors(indexOf(texts), join(t.testdirName, 'kept', 'vectors.sqlite'))
  const sent = unplacedTexts(root, vectors, MODEL, 10).map(({ text }) => text)
  t.equal(sent.length, 4)
  for (const text of sent) {
    const bytes = Buffer.byteLength(text)
    t.ok(bytes <= 6_000 && (bytes > 5_990 || text === 'd.txt\nshort\n'), `${text.slice(0, 6)}: ${bytes} bytes`)
    t.equal(Buffer.from(text).toString(), text)
  }
  t.end()
})

t.test('a file of very many parts is read in time that grows with them', t => {
  const rows = Array.from({ length: 60_000 }, (_, at) => ({
    ...{ id: 1, path: 'src/long.ts', class: 'source', line: at * 40 + 1, lines: 40, part: `k${at}` },
  }))
  const store = { all: () => rows } as unknown as IndexStore
  const vectors = new PartVectors(store, join(t.testdir({}), 'vectors.sqlite'))
  const began = performance.now()
  t.equal(vectors.learned(MODEL).parts, 50_000)
  t.ok(performance.now() - began < 10_000)
  t.end()
})
