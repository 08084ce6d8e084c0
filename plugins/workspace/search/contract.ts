import type { ReachFolder } from '../../../sdk/reach.js'
import type { tags } from 'typia'
import type { Count, Millis, Positive } from '../../../sdk/types.js'
import type { WsPath } from '../tree/contract.js'

/**
 * The mode of a search: everything (`q`), text, file names, definitions, uses, symbols by name, or code of a shape.
 */
export type SearchMode = 'q' | 'find' | 'files' | 'def' | 'refs' | 'sym' | 'ast'

/**
 * Why something was found. `sem`: the file is about what was asked, with how near it is; `rerank`: its rank by words
 * and by that together. Neither appears while `features` names `semantic`.
 */
export type SearchTagKind =
  | 'def'
  | 'text'
  | 'sem'
  | 'bm25'
  | 'rerank'
  | 'path'
  | 'import'
  | 'call'
  | 'type'
  | 'write'
  | 'fuzzy'
  | 'heuristic'

/** How current the index is that answered; text and file names are read from the disk. */
export interface SearchFreshness {
  state: 'fresh' | 'building' | 'stale'
  /** Since the index last agreed with the disk. */
  ageMs?: Millis
  /** Of the first build, from 0 to 1. */
  progress?: number & tags.Minimum<0> & tags.Maximum<1>
  /** Files that changed and are not yet read again. */
  behind?: Count
}
/** A part of a text, in UTF-16 code units. */
export interface SearchSpan {
  start: Count
  end: Count
}
/** Why a line was found. */
export interface SearchTag {
  kind: SearchTagKind
  score?: number
}
/** A line that was found. */
export interface SearchHit {
  /** From 1. */
  line: Positive
  /** At most 200 characters around the first match; in mode `files` the path. */
  text: string
  /** The matches in `text`; empty: the whole line. */
  spans: SearchSpan[]
  tags: SearchTag[]
  /** The symbol or heading around it. */
  context?: string
}
/** A file with its results. */
export interface SearchGroup {
  path: string
  score: number
  /** At most 50, by line. */
  hits: SearchHit[]
  /** The file has more results. */
  capped: boolean
}
/** One page of results, best file first. */
export interface SearchResult {
  /** The engines that ran. */
  mode: SearchMode
  /** The total number of lines; with `partial` the minimum. */
  total: Count
  /** Files in all. */
  files: Count
  /** Lines on this page. */
  shown: Count
  groups: SearchGroup[]
  freshness: SearchFreshness
  /** There are further pages: pass `after`. */
  truncated: boolean
  /** A limit of time or size ended the search, or the index is being built. */
  partial: boolean
  /** For `after`. */
  cursor?: string
  /** Suggestions that may find more. */
  hint?: string
  /** How the query was interpreted, if that may be unexpected. */
  note?: string
  /** Definitions next to the best hits. */
  related: string[] & tags.MaxItems<8>
  /** The best files that are not on this page. */
  candidates: string[] & tags.MaxItems<20>
  /** Parts of the search that did not run. */
  features: string[]
}

/** A file that changes often and is complicated. */
export interface Hotspot {
  path: string
  commits: Count
  adds: Count
  dels: Count
  /** Its branch points. */
  complexity: Count
  /** Commits times branch points. */
  score: number
  latestMs: Millis
}
/** A file that others import. */
export interface CentralModule {
  path: string
  /** Exported symbols. */
  exports: Count
}
/** Sums over a repository. */
export interface HealthTotals {
  files: Count
  symbols: Count
  complexity: Count
  hotspots: Count
}
/** The files that change often, and those that most others depend on. */
export interface RepositoryHealth {
  repo: string
  totals: HealthTotals
  /** The highest score first. */
  hotspots: Hotspot[]
  /** The most imported ones first. */
  modules: CentralModule[]
  freshness: SearchFreshness
}

/** A search of an agent in the tree of its turn. */
export interface TreeSearch {
  query: string & tags.MinLength<1> & tags.MaxLength<512>
  mode: 'find' | 'files' | 'ast'
  dir?: WsPath
  include?: string & tags.MaxLength<512>
  literal?: boolean
  caseSensitive?: boolean
}
/** What was found in a tree: the best files, and how many there are. */
export interface TreeFound {
  groups: SearchGroup[]
  files: Count
  note?: string
}

/** Searching the workspace. */
export interface SearchCalls {
  /** Searches the tree of a turn on the disk, as `GET /workspace/search` does; `folders` is what the turn reaches. */
  'workspace.find'(input: TreeSearch & { root: string; folders?: ReachFolder[] }): TreeFound

  /**
   * Search the workspace, best file first.
   *
   * `find` searches a text or regular expression on the disk; `files` names (`*`, `?`, `**` make it a pattern);
   * `def`, `refs` and `sym` for symbols (`fn:`, `class:`, `type:` or `const:` in front of the name narrows `sym`);
   * `ast` for code of the shape of the query, in which `$NAME` stands for one part and `$$$` for any number, in
   * JavaScript, TypeScript, HTML and CSS. `q` decides by the form of the query and fuses several of them. Questions in
   * words also find other words for the same thing, and files that are about it: what files are about is learned here,
   * from the workspace's own text (60 to 50,000 files), and sent nowhere. To people of areas that would tell of files
   * outside, so they find by words alone, and `features` names `semantic`.
   *
   * Where the setting `searchModel` names an embedding model, that says what files are about, for people of areas too.
   * The question is sent to it, and in the background parts of files that it does not know, at most 64 MiB a day. While
   * it is learning and where it fails, `note` says so, and the search goes on as without it.
   *
   * `dir` is a folder to stay in, `include` has patterns separated by commas (`*.ts`, `.ts`, `src/**`, `./src`,
   * `!docs`).
   * Capitals do not matter unless `caseSensitive` is set. Ignored files are searched only with `includeIgnored`, and
   * never in the modes of the index. Files over 4 MiB (1 MiB in the index), binary files and private copies are left
   * out; links are not followed. `q` and `find` also search the derived text of documents that are not text, of at most
   * 20 MiB; lines are those of that text, and documents that are read for the first time are found once `note` is gone.
   * A page has whole files: at most `limit` (100, at most 300), and about 1,000 lines. A search ends after 10 s with
   * the results so far.
   *
   * - 400: `after` is not of this query, or a pattern of `include` is malformed
   * - 404: no such folder
   * - 422: `dir` is a file, or the shape is no code of any language in question
   * - 429: eight searches of the caller are running
   * - 501: `find` without ripgrep, or `ast` without ast-grep
   */
  'GET /workspace/search'(input: {
    query: string & tags.MinLength<1> & tags.MaxLength<512>
    mode?: SearchMode
    includeIgnored?: boolean
    dir?: WsPath
    literal?: boolean
    word?: boolean
    caseSensitive?: boolean
    include?: string & tags.MaxLength<512>
    limit?: Positive
    after?: string & tags.MaxLength<512>
  }): SearchResult

  /**
   * Rank the files of a repository that change often and have many branches, and those that most others import.
   *
   * Counts only. `since` is a span such as `90d` (h, d, w, m, y), a day, a time or milliseconds; without it the whole
   * history of HEAD counts. `limit` is 20, at most 200.
   *
   * - 400: malformed `since`
   * - 404: no such repository
   */
  'GET /workspace/health'(input: {
    repo: string & tags.MinLength<1> & tags.MaxLength<4096>
    since?: string & tags.MinLength<1> & tags.MaxLength<40>
    limit?: Positive
  }): RepositoryHealth
}
