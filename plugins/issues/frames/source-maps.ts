import { dirname, join } from 'node:path/posix'
import { originalPositionFor, sourceContentFor, TraceMap } from '@jridgewell/trace-mapping'
import type { SourceFile, SourceFiles } from './source-files.js'

const MOST_MAP = 16 * 1024 * 1024
const TAIL = 4 * 1024
const MOST_MAPS = 4
const MAPPED = /\.(?:[cm]?js|css)$/
const LINK = /[#@] sourceMappingURL=(\S+)\s*(?:\*\/)?\s*$/
const INLINE = /^data:application\/json[^,]*;base64,/

/** Where a place of a built file is in its original. */
export interface OriginalPlace {
  /** As the map names it. */
  readonly source: string
  readonly line: number
  readonly column: number
  readonly name?: string
  /** The text of the original file, if the map has it. */
  readonly content?: string
}

/** A source map, and the file that it is for. */
export interface ReadMap {
  readonly place: (line: number, column: number) => OriginalPlace | undefined
}

/** Source maps of built files: the last ones are kept. */
export class SourceMaps {
  readonly #maps = new Map<string, Promise<ReadMap | undefined>>()

  /** The map of a built file; undefined: it has none that can be read. */
  async of(file: SourceFile, files: SourceFiles): Promise<ReadMap | undefined> {
    if (!MAPPED.test(file.path)) return undefined
    const beside = await files.find(`${file.path}.map`)
    const key = `${file.version} ${beside?.version}`
    const known = this.#maps.get(key) ?? readMap(file, beside, files)
    this.#maps.delete(key)
    this.#maps.set(key, known)
    if (this.#maps.size > MOST_MAPS) this.#maps.delete(this.#maps.keys().next().value!)
    return known
  }
}

const readMap = async (
  file: SourceFile,
  beside: SourceFile | undefined,
  files: SourceFiles,
): Promise<ReadMap | undefined> => {
  const text = beside ? (await files.read(beside, MOST_MAP))?.toString() : await linkedMap(file, files)
  if (text === undefined) return undefined
  try {
    const map = new TraceMap(text)
    return { place: (line, column) => placeOf(map, line, column) }
  } catch {
    return undefined
  }
}

/** The map that the last line of a file names or contains. */
const linkedMap = async (file: SourceFile, files: SourceFiles): Promise<string | undefined> => {
  const whole = file.size <= MOST_MAP ? await files.read(file, MOST_MAP) : undefined
  const tail = (whole ?? (await files.read(file, TAIL, Math.max(0, file.size - TAIL))))?.toString() ?? ''
  const link = LINK.exec(tail.slice(tail.lastIndexOf('sourceMappingURL=') - 2))?.[1]
  if (link === undefined) return undefined
  if (INLINE.test(link)) return Buffer.from(link.replace(INLINE, ''), 'base64').toString()
  if (/^[a-z]+:/i.test(link)) return undefined
  const found = await files.find(join(dirname(file.path), link.replace(/[?#].*$/, '')))
  return found && (await files.read(found, MOST_MAP))?.toString()
}

const placeOf = (map: TraceMap, line: number, column: number): OriginalPlace | undefined => {
  const { source, line: original, column: at, name } = originalPositionFor(map, { line, column })
  if (source === null || original === null) return undefined
  const content = sourceContentFor(map, source)
  return {
    ...{ source, line: original, column: at + 1 },
    ...(name !== null && { name }),
    ...(content !== null && { content }),
  }
}
