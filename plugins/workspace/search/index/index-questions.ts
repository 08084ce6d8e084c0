import type { SearchedFile } from '../found.js'
import type { SearchScope } from '../search-scope.js'
import type { LearnedParts, PlacedPart } from './part-vectors.js'
import type { FoundChunks, IndexedRow, SymbolQuestion, UsesQuestion, WordsQuestion } from './lookup.js'

/** What a named model says of a question. */
export interface NamedQuestion {
  readonly model: string
  readonly vector: readonly number[]
}

/** A part of a file as it is sent to a named model. */
export interface PartText {
  readonly key: string
  readonly text: string
}

/** The queries of the index, and their answers. */
export interface IndexQuestions {
  compare: { readonly input: object; readonly output: void }
  changed: { readonly input: { readonly paths: readonly string[] }; readonly output: void }
  symbols: { readonly input: SymbolQuestion; readonly output: SearchedFile[] }
  uses: { readonly input: UsesQuestion; readonly output: SearchedFile[] }
  chunks: { readonly input: WordsQuestion & { readonly named?: NamedQuestion }; readonly output: FoundChunks }
  /** The next parts that a named model is to learn, with their texts. */
  unplaced: { readonly input: { readonly model: string; readonly most: number }; readonly output: PartText[] }
  place: { readonly input: { readonly model: string; readonly placed: readonly PlacedPart[] }; readonly output: void }
  learned: { readonly input: { readonly model: string }; readonly output: LearnedParts }
  forget: { readonly input: { readonly model: string }; readonly output: void }
  rows: { readonly input: { readonly scope: SearchScope }; readonly output: IndexedRow[] }
  ending: {
    readonly input: { readonly scope: SearchScope; readonly endings: readonly string[] }
    readonly output: string[]
  }
  defined: { readonly input: { readonly paths: readonly string[] }; readonly output: string[] }
}

/** The progress of the index. */
export interface IndexState {
  readonly built: boolean
  readonly behind: number
  readonly progress: number
  readonly agreedAt: number
  readonly full: boolean
}

/** A question to the index. */
export interface IndexRequest {
  readonly id: number
  readonly ask: keyof IndexQuestions
  readonly input: object
  /** The longest wait for changes, unless there are more. */
  readonly wait?: { readonly most: number; readonly ms: number }
}

/** The answer to a question. */
export interface IndexAnswer {
  readonly id: number
  readonly state: IndexState
  readonly value?: unknown
  readonly failed?: string
}

/** The initial data of the index. */
export interface IndexWorkerData {
  readonly root: string
  readonly path: string
  /** Where what named models say is kept. */
  readonly vectors: string
  /** Files whose reading ended an earlier one. */
  readonly passOver: readonly string[]
}
