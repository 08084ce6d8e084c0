import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { TURN_NICENESS } from '../../../../sdk/node/programs/priority.js'
import {
  FEWEST_LEARNED,
  learnSpace,
  MOST_LEARNED,
  weightOf,
  WORD_FIELDS,
  type MeaningSpace,
  type SpreadWord,
  type WordCounts,
} from './space.js'

/** What was learned of the files of these ids; nothing: there are too few or too many. */
export interface LearnedSpace extends MeaningSpace {
  readonly ids: readonly number[]
}

const MOST_WORDS = 20_000
/** A word in fewer parts than this, or in a quarter of them, tells nothing about others. */
const FEWEST_PARTS = 3
const MOST_PARTS = 0.25
/** Each occurrence is kept in memory while it learns. */
const MOST_CELLS = 8_000_000

try {
  // On Linux each thread has its own priority.
  setPriority(Number(readlinkSync('/proc/thread-self').split('/').at(-1)), TURN_NICENESS)
} catch {
  // It keeps the priority of the daemon.
}

const learned = (path: string): LearnedSpace | undefined => {
  using db = new DatabaseSync(path, { readOnly: true })
  db.exec("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab('main', 'words', 'row')")
  const ids = (db.prepare('SELECT id FROM files ORDER BY id').all() as { id: number }[]).map(({ id }) => id)
  if (ids.length < FEWEST_LEARNED || ids.length > MOST_LEARNED) return undefined
  const placeOf = new Map(ids.map((id, at) => [id, at]))
  const { parts } = db.prepare('SELECT count(*) AS parts FROM chunks').get() as { parts: number }
  const chosen = db
    .prepare(
      'SELECT term, doc FROM temp.vocabulary WHERE doc BETWEEN ? AND ? AND length(term) > 1 '
        + "AND term NOT GLOB '[0-9]*' ORDER BY doc DESC, term LIMIT ?",
    )
    .all(FEWEST_PARTS, parts * MOST_PARTS, MOST_WORDS) as { term: string }[]
  const spots = db.prepare(
    'SELECT chunks.file, spots.col, count(*) AS count FROM spots JOIN chunks ON chunks.id = spots.doc '
      + 'WHERE spots.term = ? GROUP BY chunks.file, spots.col ORDER BY chunks.file',
  )
  const words: SpreadWord[] = []
  let cells = 0
  for (const { term } of chosen) {
    const counts = new Map<number, WordCounts>()
    const rows = spots.all(term) as { file: number; col: string; count: number }[]
    for (const { file, col, count } of rows) {
      const place = placeOf.get(file)
      const field = WORD_FIELDS.find(each => each === col)
      if (place === undefined || field === undefined) continue
      const known = counts.get(place) ?? { path: 0, head: 0, notes: 0, body: 0 }
      counts.set(place, known)
      known[field] = count
    }
    cells += counts.size
    if (cells > MOST_CELLS) break
    if (counts.size < FEWEST_PARTS) continue
    words.push({
      word: term,
      rarity: Math.log(ids.length / counts.size),
      files: [...counts.keys()],
      weights: [...counts.values()].map(weightOf),
    })
  }
  return { ids, ...learnSpace(words, ids.length) }
}

parentPort!.postMessage(learned((workerData as { path: string }).path))
