import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageVersion, programFile } from '../programs/package.js'

/** Grows by one when an older program would misread what this one writes into its data folder. */
const FORMAT = 1

interface Written {
  readonly format?: number
  readonly version?: string
  /** The workspace that its daemon served last. */
  readonly workspace?: string
}

const noteOf = (data: string): string => join(data, 'format.json')

/**
 * Notes which format and version write a data folder from now on, and for which workspace. The answer is a sentence if
 * a newer program wrote it, and then nothing is noted.
 */
export const newerFormat = (data: string, workspace: string): string | undefined => {
  const file = noteOf(data)
  const version = packageVersion(programFile('.'))
  const { format = FORMAT, version: before = 'a newer version', workspace: served } = writtenBy(file)
  if (format > FORMAT)
    return (
      `the data folder ${data} was written by sandbox ${before}, which is newer than this one, ${version}: install `
      + 'that version again, or choose another folder with --data'
    )
  if (before === version && served === workspace) return undefined
  const written: Written = { format: FORMAT, version, workspace }
  writeFileSync(`${file}.new`, JSON.stringify(written), { mode: 0o600 })
  renameSync(`${file}.new`, file)
  return undefined
}

/** The workspace that the daemon of a data folder served last; undefined where nobody noted it. */
export const workspaceServedFrom = (data: string): string | undefined => writtenBy(noteOf(data)).workspace

const writtenBy = (file: string): Written => {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Written
  } catch {
    // Nobody noted it yet, or a power cut took the note: it is written again.
    return {}
  }
}
