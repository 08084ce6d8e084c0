import { Refusal } from '../../../sdk/index.js'
import { Semaphore } from '../../../sdk/node/concurrency/semaphore.js'
import type { SearchFreshness, SearchMode, SearchTag } from './contract.js'
import { byScore, type SearchedFile, type SearchedFiles } from './found.js'
import { endingOf } from '../derived/document-format.js'
import { documentSearch, type DocumentQuery, type SearchedTexts } from './document-search.js'
import { fuse, rankWords, type EngineResult } from './fusion.js'
import { nameParts } from './index/chunks.js'
import type { IndexQuestions } from './index/index-questions.js'
import { tellingWords, type FoundChunk } from './index/lookup.js'
import type { WorkspaceIndex } from './index/workspace-index.js'
import type { SymbolKind } from './index/languages.js'
import { nameSearch } from './name-search.js'
import type { NamedModel } from './named-model.js'
import { formOf } from './query-form.js'
import { shapeSearch } from './shape-search.js'
import { NoRegex } from './ripgrep.js'
import { READ_AT_ONCE, readLines } from './shown-lines.js'
import { textSearch, type DiskSearch } from './text-search.js'

/** The query for the engines. */
export interface EngineQuestion {
  readonly mode: SearchMode
  readonly query: string
  readonly literal: boolean
  readonly word: boolean
  readonly caseSensitive: boolean
}

/** The merged results of the engines. */
export interface EngineAnswer extends SearchedFiles {
  readonly freshness: SearchFreshness
  readonly features: readonly string[]
}

const FRESH: SearchFreshness = { state: 'fresh', ageMs: 0 }
const MOST_NARROWED = 80
const PREFIXES: { readonly [prefix: string]: SymbolKind } = { fn: 'fn', class: 'class', type: 'type', const: 'const' }

/** Runs searches on the disk and in the index. */
export class Engines {
  readonly #index: WorkspaceIndex
  readonly #texts: SearchedTexts
  readonly #disk: DiskSearch
  /** The files that a text search went over. */
  readonly #seen = new Set<string>()
  #freshness: SearchFreshness = FRESH
  readonly #missing = new Set<string>()
  readonly #named: NamedModel | undefined
  #note: string | undefined

  constructor(
    { index, texts, named }: { index: WorkspaceIndex; texts: SearchedTexts; named?: NamedModel },
    disk: DiskSearch,
  ) {
    this.#index = index
    this.#named = named
    this.#texts = texts
    this.#disk = { ...disk, seen: path => this.#seen.add(path) }
  }

  async run(question: EngineQuestion): Promise<EngineAnswer> {
    const found = withDocuments(await this.#run(question), await this.#documents(question))
    const building = this.#freshness.state === 'building'
    return { ...found, partial: found.partial || building, freshness: this.#freshness, features: [...this.#missing] }
  }

  async #run({ mode, query, ...text }: EngineQuestion): Promise<SearchedFiles> {
    switch (mode) {
      case 'q':
        return this.#anything(query, text)
      case 'find':
        return textSearch(this.#disk, { query, ...text })
      case 'files':
        return nameSearch(this.#disk, query)
      case 'ast':
        return shapeSearch(this.#disk, query)
      case 'refs':
        return { files: await this.#uses(query, text.caseSensitive), partial: false }
      case 'def':
      case 'sym':
        return { files: await this.#symbols(query, true), partial: false }
    }
  }

  async #anything(
    query: string,
    text: Pick<EngineQuestion, 'literal' | 'word' | 'caseSensitive'>,
  ): Promise<SearchedFiles> {
    const form = text.literal ? ({ kind: 'regex' } as const) : formOf(query)
    // What files are about counts for questions in words.
    if (form.kind !== 'words') this.#missing.add('semantic')
    switch (form.kind) {
      case 'path': {
        const [names, lines] = await Promise.all([
          nameSearch(this.#disk, form.path),
          this.#text({ ...text, query: form.path, literal: true }),
        ])
        return this.#fused(
          [
            { kind: 'files', ...names },
            { kind: 'find', ...lines },
          ],
          form.path,
        )
      }
      case 'name': {
        const [symbols, uses, lines] = await Promise.all([
          this.#symbols(form.name, true),
          this.#uses(form.name, text.caseSensitive),
          this.#text({ ...text, query: form.name, literal: true, word: true }),
        ])
        return this.#fused(
          [
            { kind: 'def', files: symbols, partial: false },
            { kind: 'refs', files: uses, partial: false },
            { kind: 'find', ...lines },
          ],
          form.name,
        )
      }
      case 'regex':
        return textSearch(this.#disk, { ...text, query })
      case 'words':
        return this.#words(query)
    }
  }

  /** What documents say; undefined for searches that ask for something else. */
  async #documents({ mode, query, ...text }: EngineQuestion): Promise<SearchedFiles | undefined> {
    const asked = mode === 'find' ? { query, ...text } : mode === 'q' ? documentQuery(query, text) : undefined
    if (!asked) return undefined
    const endings = await this.#texts.endings()
    const { scope } = this.#disk
    const paths = asked.all ? await this.#ask('ending', { scope, endings: [...endings] }) : [...this.#seen]
    const documents = paths.filter(path => endings.has(endingOf(path)))
    if (documents.length === 0) return undefined
    try {
      return await documentSearch(this.#disk, this.#texts, documents, asked)
    } catch (error) {
      if (error instanceof NoRegex)
        return documentSearch(this.#disk, this.#texts, documents, { ...asked, literal: true })
      if (!(error instanceof Refusal) || error.reason !== 'missing-program') throw error
      return undefined
    }
  }

  async #words(query: string): Promise<SearchedFiles> {
    const words = tellingWords(query)
    const [found, named] = await Promise.all([this.#chunks(query, words), this.#symbols(words.join(''), false)])
    const files = rankWords(this.#disk.tree.root, found, named)
    return { files, partial: false, ...(this.#note !== undefined && { note: this.#note }) }
  }

  #fused(results: readonly (EngineResult & { partial: boolean; note?: string })[], query: string): SearchedFiles {
    const files = fuse(this.#disk.tree.root, results, tellingWords(query))
    return { files, partial: results.some(({ partial }) => partial) }
  }

  /** Text search as a part of another search: without ripgrep it is left out. */
  async #text(query: Parameters<typeof textSearch>[1]): Promise<SearchedFiles> {
    try {
      return await textSearch(this.#disk, query)
    } catch (error) {
      if (!(error instanceof Refusal) || error.reason !== 'missing-program') throw error
      this.#missing.add('find')
      return { files: [], partial: false }
    }
  }

  async #symbols(query: string, fuzzy: boolean): Promise<SearchedFile[]> {
    const [, prefix = '', name = query] = /^(fn|class|type|const):\s*(.+)$/.exec(query.trim()) ?? []
    const kind = PREFIXES[prefix]
    const { scope } = this.#disk
    const found = await this.#ask('symbols', { name: name.trim(), scope, fuzzy, ...(kind && { kind }) })
    return found.sort(byScore)
  }

  async #uses(name: string, caseSensitive: boolean): Promise<SearchedFile[]> {
    return (await this.#ask('uses', { name: name.trim(), scope: this.#disk.scope, caseSensitive })).sort(byScore)
  }

  async #chunks(query: string, words: readonly string[]): Promise<SearchedFile[]> {
    const { scope } = this.#disk
    const answer = await this.#named?.ask(query, !scope.reach)
    this.#note = answer?.note
    const named = answer?.question && { named: answer.question }
    const { chunks, byMeaning } = await this.#ask('chunks', { words, scope, ...named })
    if (!byMeaning) this.#missing.add('semantic')
    const files = new Map<string, SearchedFile>()
    const slots = new Semaphore(READ_AT_ONCE)
    const best = await Promise.all(
      chunks.slice(0, MOST_NARROWED).map(chunk => slots.run(() => this.#narrow(chunk, words))),
    )
    for (const [at, chunk] of chunks.entries()) {
      const file = files.get(chunk.path) ?? { path: chunk.path, score: chunk.score, lines: [], count: 0, capped: false }
      files.set(chunk.path, file)
      file.count += 1
      const line = best[at] ?? chunk.line
      file.lines.push({ line, tags: tagsOf(chunk), words })
    }
    return [...files.values()]
  }

  /** The line of a part with most of the words. */
  async #narrow({ path, line, lines }: FoundChunk, words: readonly string[]): Promise<number> {
    const all = (await readLines(this.#disk.tree, path)) ?? []
    const stems = words.map(word => word.replace(/(?:ies|es|s|ing|ed)$/, '')).filter(stem => stem.length > 1)
    let [best, most] = [line, 0]
    for (const [at, text] of all.slice(line - 1, line - 1 + lines).entries()) {
      const low = nameParts(text.slice(0, 500)).toLowerCase()
      const score = stems.filter(stem => low.includes(stem)).length
      if (score > most) [best, most] = [line + at, score]
    }
    return best
  }

  /** Queries the index, and records how current the answer is. */
  async #ask<Q extends keyof IndexQuestions>(
    ask: Q,
    input: IndexQuestions[Q]['input'],
  ): Promise<IndexQuestions[Q]['output']> {
    const { value, freshness } = await this.#index.ask(ask, input)
    if (RANK[freshness.state] >= RANK[this.#freshness.state]) this.#freshness = freshness
    return value
  }
}

const rounded = (score: number): number => Math.round(score * 1000) / 1000

/** Why a part was found: its words, what its file is about, and the rank that both together gave it. */
const tagsOf = ({ score, worded, meaning }: FoundChunk): SearchTag[] => [
  ...(worded > 0 ? [{ kind: 'bm25' as const, score: rounded(worded) }] : []),
  ...(meaning === undefined ? [] : [{ kind: 'sem' as const, score: rounded(meaning) }]),
  ...(meaning === undefined || worded === 0 ? [] : [{ kind: 'rerank' as const, score: rounded(score) }]),
]

/** The query for the texts of documents, by the form of a query for anything. */
const documentQuery = (query: string, text: Omit<DocumentQuery, 'query' | 'all'>): DocumentQuery | undefined => {
  const form = text.literal ? ({ kind: 'regex' } as const) : formOf(query)
  switch (form.kind) {
    case 'path':
      return undefined
    case 'name':
      return { ...text, query: form.name, literal: true, word: true }
    case 'regex':
      return { ...text, query }
    case 'words': {
      const all = tellingWords(query)
      // Without a word the pattern would be in every line.
      if (all.length === 0) return undefined
      return {
        query: all.map(word => word.replaceAll('$', String.raw`\$`)).join('|'),
        literal: false,
        word: false,
        caseSensitive: false,
        all,
      }
    }
  }
}

/** Shows of a document what it says rather than its bytes; the best one ranks a little below the best file. */
const withDocuments = (found: SearchedFiles, documents: SearchedFiles | undefined): SearchedFiles => {
  if (!documents) return found
  const said = new Set(documents.files.map(({ path }) => path))
  const others = found.files.filter(({ path }) => !said.has(path))
  const best = others[0]?.score ?? 1
  const top = documents.files[0]?.score ?? 1
  const ranked = documents.files.map(file => ({
    ...file,
    score: Math.round(((best * file.score) / top) * 900) / 1000,
  }))
  const note = found.note ?? documents.note
  return {
    files: [...others, ...ranked].sort(byScore),
    partial: found.partial || documents.partial,
    ...(note !== undefined && { note }),
  }
}

const RANK = { fresh: 0, stale: 1, building: 2 } as const
