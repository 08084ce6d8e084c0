import { accessTo, isWithin, type Reach } from '../../../sdk/index.js'
import { isIncluded, type IncludePatterns } from './globs.js'

/** Which files a search considers; plain data, so that it can be sent to the index. */
export interface SearchScope {
  /** A real folder; `.` for all. */
  readonly dir: string
  readonly patterns: IncludePatterns
  readonly reach: Reach
}

/** Whether a file is in the scope. */
export const admits = ({ dir, patterns, reach }: SearchScope, path: string): boolean =>
  isWithin(dir, path) && accessTo(reach, path) !== undefined && isIncluded(patterns, path)

/** The purpose of a file, judged by its path. */
export type FileClass = 'source' | 'config' | 'test' | 'docs'

const TEST =
  /(?:^|\/)(?:tests?|__tests__|specs?|e2e|testdata|fixtures)\/|[._-](?:test|spec)\.\w+$|(?:^|\/)test_\w+\.py$/i
const DOCS = /\.(?:md|mdx|rst|txt|adoc|html?)$|(?:^|\/)docs?\//i
const CONFIG = /\.(?:json|jsonc|ya?ml|toml|ini|cfg|conf|lock|env|xml|properties|gradle)$|(?:^|\/)\.[^/]+$/i

/** The class of a path. */
export const classOf = (path: string): FileClass =>
  TEST.test(path) ? 'test' : DOCS.test(path) ? 'docs' : CONFIG.test(path) ? 'config' : 'source'
