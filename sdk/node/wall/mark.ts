import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { TEMPORARY, writeAtomic } from '../files/files.js'
import { codeOf } from '../files/paths.js'
import { NOTES } from './sources.js'

const FORM = /^SANDBOX_WALL_[0-9a-f]{32}$/

const known = new Map<string, Promise<string>>()

/** A random text in the arguments of the walls of a data folder, stored in that folder; identifies their processes. */
export const markOf = (data: string): Promise<string> => {
  const found = known.get(data)
  if (found) return found
  const mark = kept(join(data, NOTES, 'mark'))
  mark.catch(() => known.delete(data))
  known.set(data, mark)
  return mark
}

/** Reads the mark from a file; the first process creates it. */
const kept = async (path: string): Promise<string> => {
  const text = await readFile(path, 'utf8').catch(error =>
    codeOf(error) === 'ENOENT' ? undefined : Promise.reject(error),
  )
  if (text !== undefined && FORM.test(text)) return text
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const mark = `SANDBOX_WALL_${randomBytes(16).toString('hex')}`
  if (text !== undefined) {
    await writeAtomic(path, mark)
    return mark
  }
  const temporary = join(dirname(path), `${TEMPORARY}${randomBytes(9).toString('hex')}`)
  await writeAtomic(temporary, mark)
  try {
    await link(temporary, path)
    return mark
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
    return readFile(path, 'utf8')
  } finally {
    await rm(temporary, { force: true })
  }
}
