import { createHash, randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ChangedSides, SideFile } from '../../types.js'

const LOOKED_AT = 8000

/** Writes one side of a comparison into a folder; of a side that is too large only that it is there. */
export const sideFile = async (
  folder: string,
  side: Buffer | 'large' | undefined,
  blob?: string,
): Promise<SideFile | undefined> => {
  if (side === undefined) return undefined
  if (side === 'large') return {}
  const file = join(folder, randomUUID())
  await writeFile(file, side, { mode: 0o600 })
  return {
    file,
    size: side.length,
    hash: createHash('sha256').update(side).digest('hex'),
    ...(blob !== undefined && { blob }),
  }
}

/** The fields of both sides that are there. */
export const presentSides = <T>(before: T | undefined, after: T | undefined): { before?: T; after?: T } => ({
  ...(before !== undefined && { before }),
  ...(after !== undefined && { after }),
})

/** Whether git takes these bytes for binary. */
export const hasZeros = (bytes: Uint8Array): boolean => bytes.subarray(0, LOOKED_AT).includes(0)

/** Which of the paths in `git diff --numstat -z` are binary, by their later name. */
export const binariesIn = (fields: readonly string[]): ReadonlySet<string> => {
  const binaries = new Set<string>()
  for (let at = 0; at < fields.length; at++) {
    const [, added, name] = /^(\d+|-)\t(?:\d+|-)\t(.*)$/s.exec(fields[at]!) ?? []
    if (added === undefined) continue
    // The two names of a renamed file follow in separate fields.
    const path = name === '' ? fields[(at += 2)] : name
    if (path !== undefined && added === '-') binaries.add(path)
  }
  return binaries
}

/** A row of `git diff --raw -z --no-abbrev`. */
export interface RawRow extends ChangedSides {
  readonly letter: string
}

const ABSENT = '000000'
const MODULE = '160000'
const UNKNOWN = /^0+$/

const sideIn = (mode: string, id: string): { blob?: string } | undefined =>
  mode === ABSENT || mode === MODULE ? undefined : UNKNOWN.test(id) ? {} : { blob: id }

/** Parses the rows of `git diff --raw -z --no-abbrev`; `rest` is what follows them. */
export const rawRows = (text: string): { rows: RawRow[]; rest: string[] } => {
  const fields = text.split('\0')
  const rows: RawRow[] = []
  let at = 0
  while (fields[at]?.startsWith(':')) {
    const [oldMode = '', newMode = '', oldId = '', newId = '', status = ''] = fields[at]!.slice(1).split(' ')
    const renamed = status.startsWith('R')
    rows.push({
      path: fields[at + (renamed ? 2 : 1)]!,
      ...(renamed && { from: fields[at + 1]! }),
      letter: status[0] ?? '',
      ...presentSides(sideIn(oldMode, oldId), sideIn(newMode, newId)),
    })
    at += renamed ? 3 : 2
  }
  return { rows, rest: fields.slice(at) }
}
