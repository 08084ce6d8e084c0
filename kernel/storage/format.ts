import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { StartError } from '../config/start-error.js'

/** Grows by one when an older program would misread what this one writes into its data folder. */
const FORMAT = 1

interface Written {
  readonly format?: number
  readonly version?: string
}

/** Refuses a data folder that a newer program wrote; notes which format and version write it from now on. */
export const assertFormat = (data: string, version: string): void => {
  const file = join(data, 'format.json')
  const { format = FORMAT, version: before = 'a newer version' } = writtenBy(file)
  if (format > FORMAT)
    throw new StartError(
      `the data folder ${data} was written by sandbox ${before}, which is newer than this one, ${version}: install `
        + 'that version again, or choose another folder with --data',
    )
  if (before === version) return
  writeFileSync(`${file}.new`, JSON.stringify({ format: FORMAT, version } satisfies Written), { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

const writtenBy = (file: string): Written => {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Written
  } catch {
    // Nobody noted it yet, or a power cut took the note: it is written again.
    return {}
  }
}
