import { refuse } from '../../../sdk/index.js'
import { conversionOf, isOn } from '../../../sdk/node/repositories/conversion.js'
import { fileDiffOf, isBinary, MOST_SIDE, sideOfEntry, sideOnDisk, type FileSide } from '../objects/sides.js'
import type { Objects } from '../objects/objects.js'
import type { TreeEntryAt } from '../objects/tree-entries.js'
import type { OpenRepo } from '../repositories/repositories.js'
import type { WorkingFileDiff } from './contract.js'

/** An entry of the index. */
export type StagedEntry = TreeEntryAt & { readonly stage: number }

const REGULAR = /^100/

/** The entries of a path in the index, one for each stage. */
export const inIndex = async ({ git }: OpenRepo, path: string): Promise<StagedEntry[]> => {
  const { text } = await git.look(['ls-files', '-s', '-z', '--', path])
  return text.split('\0').flatMap(record => {
    const tab = record.indexOf('\t')
    const [mode = '', id = '', stage = '0'] = record.slice(0, tab).split(' ')
    return record.slice(tab + 1) === path && id !== '' ? [{ mode, id, type: 'blob', stage: Number(stage) }] : []
  })
}

/** The name that a path had before a rename that is staged. */
const renamedFrom = async ({ git, sees }: OpenRepo, path: string): Promise<string | undefined> => {
  const { text } = await git.look(['diff', '--cached', '--name-status', '--diff-filter=R', '-M', '-z'])
  const fields = text.split('\0')
  for (let at = 0; at + 2 < fields.length; at += 3)
    if (fields[at + 2] === path && sees(fields[at + 1]!)) return fields[at + 1]
  return undefined
}

/** Whether git converts a file before storing it: line ends, filters, encodings. */
const converts = async ({ git }: OpenRepo, path: string): Promise<boolean> => {
  const [{ text }, { forms }] = await Promise.all([
    git.look(['check-attr', '-z', 'text', 'eol', 'filter', 'ident', 'working-tree-encoding', '--', path]),
    conversionOf(git.place),
  ])
  const values = text.split('\0').filter((_, at) => at % 3 === 2)
  const autocrlf = forms.get('core.autocrlf')
  return values.some(value => value !== 'unspecified' && value !== 'unset') || autocrlf === 'input' || isOn(autocrlf)
}

const HUNK = /^@@ .*@@/

/** The new side of a unified diff that shows the whole file. */
const laterSide = (diff: string): string => {
  const lines = diff.split('\n')
  const kept: string[] = []
  let open = true
  let last = ''
  for (const line of lines.slice(lines.findIndex(each => HUNK.test(each)) + 1)) {
    if (line.startsWith('\\') && last !== '-') open = false
    if (line.startsWith(' ') || line.startsWith('+')) kept.push(line.slice(1))
    last = line[0] ?? ''
  }
  return kept.length === 0 ? '' : kept.join('\n') + (open ? '\n' : '')
}

/** The file on disk as git would store it, where that differs from its bytes. */
const stored = async (opened: OpenRepo, path: string, before: TreeEntryAt, disk: FileSide, objects: Objects) => {
  if (disk === 'large' || disk.length > MOST_SIDE || !REGULAR.test(before.mode) || !(await converts(opened, path)))
    return disk
  const { text } = await opened.git.look(['diff', '-U1000000', '--no-color', '--', path], { maxBytes: 8 * MOST_SIDE })
  if (HUNK.test(text) || /\n@@ /.test(text)) return Buffer.from(laterSide(text))
  // A binary file has no lines to show; without a difference the index has the stored form.
  return /^Binary files /m.test(text) ? disk : sideOfEntry(objects, opened, before)
}

/** What lies on the two sides under which a path is listed as changed. */
export interface WorkingEntries {
  /** The earlier name of a path that is staged as renamed. */
  readonly from?: string
  readonly before: TreeEntryAt | undefined
  /** `disk`: what lies in the working tree. */
  readonly after: TreeEntryAt | 'disk' | undefined
  /** The stages of an unmerged path: its base, ours and theirs. */
  readonly stages: readonly (TreeEntryAt | undefined)[]
}

/** Finds both sides of an uncommitted path: of an unmerged one ours and theirs. */
export const workingEntries = async (
  objects: Objects,
  opened: OpenRepo,
  path: string,
  side: 'staged' | 'unstaged' | 'conflicted',
): Promise<WorkingEntries> => {
  const { git } = opened
  const entries = await inIndex(opened, path)
  const stage = (number: number) => entries.find(entry => entry.stage === number)
  const absent = (): never => refuse('not-found', `${path} of ${git.place.repo} is on neither side`)
  const inHead = async (name: string) => {
    const head = await objects.head(git)
    return head === undefined ? undefined : objects.entry(git, head, name)
  }
  const stages = [1, 2, 3].map(stage)
  if (side === 'conflicted') {
    if (!stages.some(Boolean)) absent()
    return { before: stages[1], after: stages[2], stages }
  }
  if (side === 'unstaged') {
    const disk = (await sideOnDisk(git.place.dir, path, 0)) === undefined ? undefined : 'disk'
    if (!stage(0) && !disk) absent()
    return { before: stage(0), after: disk, stages }
  }
  const after = stage(0)
  const same = await inHead(path)
  const from = same || !after ? undefined : await renamedFrom(opened, path)
  const before = same ?? (from === undefined ? undefined : await inHead(from))
  if (!before && !after) absent()
  return { before, after, stages, ...(from !== undefined && before && { from }) }
}

/** The content of a side: of the disk as git would store it. */
export const workingContent = async (
  objects: Objects,
  opened: OpenRepo,
  path: string,
  { before }: Pick<WorkingEntries, 'before'>,
  side: TreeEntryAt | 'disk' | undefined,
  most = MOST_SIDE,
): Promise<FileSide | undefined> => {
  if (side !== 'disk') return sideOfEntry(objects, opened, side, most)
  const disk = await sideOnDisk(opened.git.place.dir, path, most)
  return before && disk !== undefined ? stored(opened, path, before, disk, objects) : disk
}

/** The two sides under which a path is listed as changed. */
export const workingSides = async (
  objects: Objects,
  opened: OpenRepo,
  path: string,
  side: 'staged' | 'unstaged' | 'conflicted',
): Promise<WorkingFileDiff> => {
  const { git } = opened
  const found = await workingEntries(objects, opened, path, side)
  const content = (entry: TreeEntryAt | 'disk' | undefined) => workingContent(objects, opened, path, found, entry)
  if (side !== 'conflicted') return fileDiffOf(await content(found.before), await content(found.after))
  const [base, ours, theirs] = await Promise.all(found.stages.map(content))
  const shown = (text: FileSide | undefined) =>
    text === undefined || text === 'large' || isBinary(text) ? undefined : text.toString()
  const stages = Object.entries({ base: shown(base), ours: shown(ours), theirs: shown(theirs) })
  const head = await objects.head(git)
  const committed = head === undefined ? undefined : await objects.entry(git, head, path)
  return {
    ...fileDiffOf(await content(committed), await sideOnDisk(git.place.dir, path)),
    ...Object.fromEntries(stages.filter(([, text]) => text !== undefined)),
  }
}
