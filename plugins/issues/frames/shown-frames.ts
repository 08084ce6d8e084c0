import { dirname, join } from 'node:path/posix'
import type { IssueException, IssueLocation, StackFrame } from '../contract.js'
import type { ReportedException, ReportedFrame } from '../stored.js'
import { candidatesOf } from './candidates.js'
import { isSecretFile } from '../../../sdk/node/access/secret-files.js'
import type { SourceFile, SourceFiles } from './source-files.js'
import type { SourceMaps } from './source-maps.js'

const MOST_SOURCE = 2 * 1024 * 1024
const AROUND = 5
const MOST_LINE = 500
const MOST_MAPPED = 60

export interface FramesDeps {
  readonly files: SourceFiles
  readonly maps: SourceMaps
  /** The real path of the workspace. */
  readonly workspace: string
  /** The folder of the repository, from the root of the workspace. */
  readonly repo: string
  /** Removes stored values from source lines. */
  readonly clean: (text: string) => string
}

/** Exceptions with their frames as people see them: mapped to original files, and found in the workspace. */
export const shownExceptions = async (
  deps: FramesDeps,
  exceptions: readonly ReportedException[],
): Promise<IssueException[]> => {
  let left = MOST_MAPPED
  const shown: IssueException[] = []
  for (const { frames, ...exception } of exceptions) {
    const found: StackFrame[] = []
    for (const frame of frames) found.push(left-- > 0 ? await shownFrame(deps, frame) : bare(frame))
    shown.push({ ...exception, frames: found })
  }
  return shown
}

/** Where a frame is in the workspace. */
export const locationOf = async (deps: FramesDeps, frame: ReportedFrame): Promise<IssueLocation | undefined> => {
  const { path, line, function: name } = await shownFrame(deps, frame)
  if (path === undefined) return undefined
  return { path, ...(line !== undefined && { line }), ...(name !== undefined && { function: name }) }
}

const bare = ({ module: _module, ...frame }: ReportedFrame): StackFrame => frame

/** The first file of some paths that is there. */
const firstOf = async (files: SourceFiles, paths: readonly string[]): Promise<SourceFile | undefined> => {
  for (const path of paths) {
    const found = await files.find(path)
    if (found) return found
  }
  return undefined
}

const shownFrame = async (deps: FramesDeps, given: ReportedFrame): Promise<StackFrame> => {
  const frame = bare(given)
  const { files, maps, workspace, repo } = deps
  if (frame.file === undefined || isInternal(frame.file)) return frame
  const built = await firstOf(files, candidatesOf(frame.file, workspace, repo))
  if (!built) return frame
  const map = frame.line === undefined ? undefined : await maps.of(built, files)
  const place = map?.place(frame.line!, Math.max(0, (frame.column ?? 1) - 1))
  if (!place)
    return { ...frame, path: built.path, ...(frame.source === undefined && (await linesAt(deps, built, frame))) }
  const { source, line, column, name, content } = place
  const beside = join(dirname(built.path), source)
  const original = await firstOf(files, [beside, ...candidatesOf(source, workspace, repo)])
  const { before: _before, source: _source, after: _after, ...rest } = frame
  const shows = !isSecretFile(source)
  return {
    ...rest,
    ...{ file: source.slice(0, MOST_LINE), line, column, mapped: true },
    ...(name !== undefined && { function: name.slice(0, 200) }),
    ...(original && { path: original.path }),
    ...(shows && content !== undefined && linesAround(deps, content, line)),
    ...(shows && content === undefined && original && (await linesAt(deps, original, { line }))),
  }
}

const isInternal = (file: string): boolean => /^(?:node:|<|native |\[)/.test(file)

type Lines = Pick<StackFrame, 'before' | 'source' | 'after'>

const linesAt = async (
  deps: FramesDeps,
  file: SourceFile,
  { line }: Pick<StackFrame, 'line'>,
): Promise<Lines | undefined> => {
  const bytes = line === undefined ? undefined : await deps.files.read(file, MOST_SOURCE)
  return bytes && linesAround(deps, bytes.toString(), line!)
}

const linesAround = ({ clean }: FramesDeps, text: string, line: number): Lines | undefined => {
  const lines = text.split('\n')
  const cut = (each: string) => clean(each.replace(/\r$/, '').slice(0, MOST_LINE).toWellFormed())
  const source = lines[line - 1]
  if (source === undefined) return undefined
  return {
    before: lines.slice(Math.max(0, line - 1 - AROUND), line - 1).map(cut),
    source: cut(source),
    after: lines.slice(line, line + AROUND).map(cut),
  }
}
