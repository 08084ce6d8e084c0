import type { ToolResult } from '../providers/adapter.js'
import { headAndTail, partsText } from './head-and-tail.js'

/** What a model reads of one result at most, in bytes. */
export const MOST_READ = 30_000
/** The least that a model with a small window reads. */
export const LEAST_READ = 1_000

/**
 * The result of a call as a model reads it: of a long text the beginning and the end. The whole of it is in a file,
 * which `keep` writes where the call has not.
 */
export const limitedResult = async (
  result: ToolResult,
  most: number,
  keep: (text: string) => Promise<string | undefined>,
): Promise<ToolResult> => {
  const { text, whole } = result
  const parts = headAndTail(text, most)
  if (!parts) return result
  const path = whole ?? (await keep(text))
  const more = path === undefined ? '' : `. All of it: Read ${path} with offset and limit, or Search with dir ${path}`
  return { ...result, text: partsText(parts, more) }
}
