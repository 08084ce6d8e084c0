import { availableParallelism } from 'node:os'
import { refuse, ignored } from '../../../sdk/index.js'
import { Semaphore } from '../../../sdk/node/concurrency/semaphore.js'
import { programFile } from '../../../sdk/node/programs/package.js'
import { sweepTree } from '../tree/sweep.js'
import { runConfined } from '../confined.js'
import { byScore, excerpt, MOST_FILE_LINES, type SearchedFile, type SearchedFiles } from './found.js'
import { admits, classOf, type FileClass } from './search-scope.js'
import { readLines } from './shown-lines.js'
import type { ShapeAnswer, ShapeInput } from './shape-child.js'
import { isTimeout, type DiskSearch } from './text-search.js'

const CHILD = programFile('plugins/workspace/search/shape-child.js')
const LANGUAGES: { readonly [extension: string]: string } = {
  ts: 'TypeScript',
  mts: 'TypeScript',
  cts: 'TypeScript',
  tsx: 'Tsx',
  js: 'JavaScript',
  mjs: 'JavaScript',
  cjs: 'JavaScript',
  jsx: 'JavaScript',
  html: 'Html',
  htm: 'Html',
  css: 'Css',
}
const MOST_CHILDREN = 4
const MOST_BATCH = 4 * 1024 * 1024
const MOST_OUTPUT = 8 * 1024 * 1024
const CLASS_SCORE: { readonly [each in FileClass]: number } = { source: 4, config: 3, test: 2, docs: 1 }

/** Finds code of a shape, in programs behind a wall that see only the texts to search. */
export const shapeSearch = async (search: DiskSearch, pattern: string): Promise<SearchedFiles> => {
  const { place, tree, scope, includeIgnored, signal } = search
  const children = new Semaphore(Math.min(MOST_CHILDREN, availableParallelism()))
  const files: SearchedFile[] = []
  const running: Promise<void>[] = []
  const seen = new Set<string>()
  const parsed = new Set<string>()
  let [waiting, bytes, partial]: [{ path: string; language: string; text: string }[], number, boolean] = [[], 0, false]
  const searchIn = async (batch: typeof waiting): Promise<void> => {
    const input: ShapeInput = { pattern, files: batch }
    const { code, stdout, stderr, truncated } = await runConfined(place, CHILD, {
      input: Buffer.from(JSON.stringify(input)),
      signal,
      maxBytes: MOST_OUTPUT,
    })
    if (code !== 0 && /Cannot find|native binding/i.test(stderr))
      refuse('missing-program', 'expected ast-grep and found none for this machine: install the package @ast-grep/napi')
    if (truncated || code !== 0) return void (partial = true)
    const answer = JSON.parse(stdout.toString()) as ShapeAnswer
    for (const language of answer.parsed) parsed.add(language)
    for (const { path, matches } of answer.files) {
      const text = batch.find(file => file.path === path)!.text.split('\n')
      const lines = matches.slice(0, MOST_FILE_LINES).map(({ line, start, end }) => ({
        line,
        tags: [{ kind: 'text' as const }],
        ...excerpt(text[line - 1] ?? '', [{ start, end }]),
      }))
      const capped = matches.length > MOST_FILE_LINES
      files.push({ path, score: CLASS_SCORE[classOf(path)], lines, count: matches.length, capped })
    }
  }
  const flush = () => {
    if (waiting.length === 0) return
    const batch = waiting
    ;[waiting, bytes] = [[], 0]
    const started = children.run(() => searchIn(batch))
    started.catch(ignored('the caller that awaits it gets the failure'))
    running.push(started)
  }
  try {
    for await (const { path, kind } of sweepTree(tree, { from: scope.dir, ignored: includeIgnored, signal })) {
      const language = LANGUAGES[path.slice(path.lastIndexOf('.') + 1).toLowerCase()]
      if (kind !== 'file' || language === undefined || !admits(scope, path)) continue
      signal.throwIfAborted()
      const text = (await readLines(tree, path))?.join('\n')
      if (text === undefined || text.length > MOST_BATCH / 4) continue
      seen.add(language)
      waiting.push({ path, language, text })
      bytes += text.length
      if (bytes > MOST_BATCH) flush()
      if (running.length > MOST_CHILDREN) await running.shift()
    }
    flush()
    await Promise.all(running)
  } catch (error) {
    await Promise.allSettled(running)
    if (!isTimeout(signal)) throw error
    partial = true
  }
  if (seen.size > 0 && parsed.size === 0 && !partial)
    refuse(
      'unprocessable',
      `the shape is no code of ${[...seen].sort().join(', ')}: write it as code, with $NAME for a part`,
    )
  return { files: files.sort(byScore), partial }
}
