import { createHash } from 'node:crypto'
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import type { Objects } from '../objects/objects.js'
import { sideOfEntry } from '../objects/sides.js'
import { checkedPath } from '../repositories/names.js'
import { orConflict, type Writing } from '../writes/write.js'
import { inIndex } from './file-sides.js'

/** A text for the index in place of what is on disk. */
export interface StagedText {
  readonly path: string
  readonly content: string
  /** The SHA-256 of the staged text that it was made from. */
  readonly baseHash: string
}

const PLAIN = /^100/

/** Puts a text into the index as the content of a path; the disk stays. */
export const stageText = async (
  write: Writing,
  objects: Objects,
  { path: asked, content, baseHash }: StagedText,
): Promise<void> => {
  const { opened } = write
  const { repo, git } = opened
  const path = checkedPath(repo, asked)
  const entries = await inIndex(opened, path)
  const [entry] = entries
  if (entries.some(({ stage }) => stage > 0)) refuse('conflict', `${path} of ${repo} is unmerged: resolve it first`)
  const disk = await lstat(join(git.place.dir, path)).catch(() => undefined)
  if (!entry && !disk) refuse('not-found', `${path} of ${repo} is neither on disk nor tracked`)
  if (entry ? !PLAIN.test(entry.mode) : !disk!.isFile()) refuse('unprocessable', `${path} of ${repo} is no plain file`)
  const before = await sideOfEntry(objects, opened, entry)
  const hash =
    before === 'large'
      ? ''
      : createHash('sha256')
          .update(before ?? '')
          .digest('hex')
  if (hash !== baseHash)
    refuse('conflict', `what is staged of ${path} of ${repo} changed since: look again`, { fields: { hash } })
  const { text } = await orConflict(write.run(['hash-object', '-w', '--stdin'], { input: Buffer.from(content) }))
  const mode = entry?.mode ?? (disk!.mode & 0o100 ? '100755' : '100644')
  await orConflict(write.run(['update-index', '--add', '--cacheinfo', `${mode},${text.trim()},${path}`]))
}
