import type { WorkspaceEntry } from '../../../../workspace/contract.js'

/** What is known of one folder. */
export interface KnownFolder {
  readonly entries: readonly WorkspaceEntry[]
  /** How many entries were not read yet. */
  readonly hidden: number
  readonly fault?: string
}

/** A row of the tree as it is shown. */
export type TreeRow =
  | { readonly kind: 'entry'; readonly entry: WorkspaceEntry; readonly level: number; readonly open: boolean }
  | { readonly kind: 'more'; readonly path: string; readonly level: number; readonly hidden: number }
  | { readonly kind: 'fault'; readonly path: string; readonly level: number; readonly fault: string }
  | { readonly kind: 'empty' | 'reading'; readonly path: string; readonly level: number }

/** The folder that something lies in; `.` is the root. */
export const folderOfPath = (path: string): string => path.split('/').slice(0, -1).join('/') || '.'

/** The path of a name in a folder. */
export const pathInFolder = (folder: string, name: string): string => (folder === '.' ? name : `${folder}/${name}`)

/** The last part of a path. */
export const nameOfPath = (path: string): string => path.split('/').at(-1)!

/** Entries as the tree shows them. */
export const withFoldersFirst = (entries: readonly WorkspaceEntry[]): WorkspaceEntry[] => [
  ...entries.filter(({ type }) => type === 'dir'),
  ...entries.filter(({ type }) => type !== 'dir'),
]

/** Rows of opened folders, one after the other. */
export const rowsOfTree = (
  folders: ReadonlyMap<string, KnownFolder>,
  opened: ReadonlySet<string>,
  folder = '.',
  level = 0,
  rows: TreeRow[] = [],
): TreeRow[] => {
  const known = folders.get(folder)
  if (!known) {
    rows.push({ kind: 'reading', path: folder, level })
    return rows
  }
  if (known.fault !== undefined) rows.push({ kind: 'fault', path: folder, level, fault: known.fault })
  else if (known.entries.length === 0) rows.push({ kind: 'empty', path: folder, level })
  for (const entry of known.entries) {
    const open = entry.type === 'dir' && opened.has(entry.path)
    rows.push({ kind: 'entry', entry, level, open })
    if (open) rowsOfTree(folders, opened, entry.path, level + 1, rows)
  }
  if (known.hidden > 0) rows.push({ kind: 'more', path: folder, level, hidden: known.hidden })
  return rows
}
