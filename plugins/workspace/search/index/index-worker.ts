import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { TURN_NICENESS } from '../../../../sdk/node/programs/priority.js'
import { Indexer } from './indexer.js'
import { IndexStore } from './index-store.js'
import type { IndexAnswer, IndexQuestions, IndexRequest, IndexWorkerData } from './index-questions.js'
import { Meaning } from './meaning.js'
import { unplacedTexts } from './part-texts.js'
import { PartVectors } from './part-vectors.js'
import { definedIn, findChunks, findSymbols, findUses, pathsEnding, rowsBelow } from './lookup.js'

const { root, path, vectors: vectorsPath, passOver } = workerData as IndexWorkerData

try {
  // On Linux each thread has its own priority.
  setPriority(Number(readlinkSync('/proc/thread-self').split('/').at(-1)), TURN_NICENESS)
} catch {
  // It keeps the priority of the daemon.
}

const store = new IndexStore(path)
const indexer = new Indexer(root, store, passOver)
const meaning = new Meaning(store, path)
const vectors = new PartVectors(store, vectorsPath)
store.onPut = (file, name, chunks) => {
  meaning.placed(file, name, chunks)
  vectors.changed(file)
}
store.onDelete = file => {
  meaning.gone(file)
  vectors.gone(file)
}
store.onRebuild = () => {
  meaning.reset()
  vectors.reset()
}
indexer.onCurrent = () => meaning.learn()
meaning.onMissed = paths => indexer.changed(paths)

const answers: { [Q in keyof IndexQuestions]: (input: IndexQuestions[Q]['input']) => IndexQuestions[Q]['output'] } = {
  compare: () => indexer.compare(),
  changed: ({ paths }) => indexer.changed(paths),
  symbols: question => findSymbols(store, question),
  uses: question => findUses(store, question),
  chunks: ({ named, ...question }) =>
    findChunks(store, meaning, question, named && vectors.nearness(named.model, named.vector, question.scope)),
  unplaced: ({ model, most }) => unplacedTexts(root, vectors, model, most),
  place: ({ model, placed }) => vectors.place(model, placed),
  learned: ({ model }) => vectors.learned(model),
  forget: ({ model }) => vectors.forget(model),
  rows: ({ scope }) => rowsBelow(store, scope),
  ending: ({ scope, endings }) => pathsEnding(store, scope, endings),
  defined: ({ paths }) => definedIn(store, paths),
}

const answer = async ({ id, ask, input, wait }: IndexRequest): Promise<void> => {
  const send = (message: Omit<IndexAnswer, 'id' | 'state'>) =>
    parentPort!.postMessage({ id, state: indexer.state, ...message } satisfies IndexAnswer)
  if (!store.isThere()) indexer.rebuild()
  if (wait !== undefined && indexer.state.behind <= wait.most) await indexer.settled(wait.ms)
  try {
    send({ value: answers[ask](input as never) })
  } catch (error) {
    if (!/malformed|not a database|corrupt|disk I\/O/i.test(String(error))) return send({ failed: String(error) })
    indexer.rebuild()
    send({ value: answers[ask](input as never) })
  }
}

parentPort!.on('message', (request: IndexRequest) => void answer(request))
indexer.onReading = reading => parentPort!.postMessage({ reading })
