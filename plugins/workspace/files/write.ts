import { createHash } from 'node:crypto'
import { lstat, stat } from 'node:fs/promises'
import { refuse } from '../../../sdk/index.js'
import { isFull, writeFailure } from '../../../sdk/node/files/disk.js'
import { flushFolder, writeAtomic } from '../../../sdk/node/files/files.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { openFile, openParent, openPath, type PathTree, shownPath } from '../../../sdk/node/files/open-path.js'
import type { WrittenFile } from './contract.js'

/** The maximum size of a file that is written at once. */
export const MOST_WRITTEN = 16 * 1024 * 1024

/** The content to write. */
export interface FileToWrite {
  readonly path: string
  readonly bytes: Buffer
  readonly baseHash?: string
  readonly createParents?: boolean
}

/** The bytes of a text in its encoding. */
export const bytesOfText = (content: string, encoding: 'utf8' | 'base64'): Buffer => {
  const wrong = (expected: string): never =>
    refuse('invalid', `content: expected ${expected}, found another text`, { errors: [{ path: 'content', expected }] })
  if (encoding === 'base64') {
    const bytes = Buffer.from(content, 'base64')
    return bytes.toString('base64') === content ? bytes : wrong('base64 with its padding (RFC 4648, section 4)')
  }
  return content.isWellFormed() ? Buffer.from(content) : wrong('Unicode without unpaired surrogates')
}

/** The SHA-256 of a plain file, and its real path; undefined: it does not exist. */
export const presentFile = async (
  tree: PathTree,
  path: string,
): Promise<{ hash: string; path: string; mode: number } | undefined> => {
  await using found = await openPath(tree, path)
  if (!found) return undefined
  if (found.stats.isDirectory()) refuse('conflict', `${shownPath(path)} is a folder`)
  if (!found.stats.isFile()) refuse('conflict', `${shownPath(path)} is a pipe, socket or device`)
  await using handle = await openFile(found, path)
  const hash = createHash('sha256')
  for await (const piece of handle.createReadStream({ autoClose: false })) hash.update(piece as Buffer)
  return { hash: hash.digest('hex'), path: found.path, mode: found.stats.mode & 0o7777 }
}

/** Refuses a write if the file has changed; the refusal has the current `hash`. */
export const assertBase = (path: string, baseHash: string | undefined, hash: string | undefined): void => {
  if (baseHash === undefined || baseHash === (hash ?? 'absent')) return
  const found = hash === undefined ? 'nothing there' : `another content (${hash})`
  refuse('conflict', `${shownPath(path)} changed: expected ${baseHash}, found ${found}; read it again`, {
    fields: hash === undefined ? {} : { hash },
  })
}

/** Writes a file in one step; alone, since it compares and then writes. */
export const writeFileAt = async (
  tree: PathTree,
  { path, bytes, baseHash, createParents = true }: FileToWrite,
): Promise<WrittenFile & { changed: string[] }> => {
  if (bytes.length > MOST_WRITTEN)
    refuse('too-large', `expected at most ${MOST_WRITTEN} bytes, found ${bytes.length}: upload larger files`)
  const before = await presentFile(tree, path)
  assertBase(path, baseHash, before?.hash)
  const hash = createHash('sha256').update(bytes).digest('hex')
  const real = before?.path ?? path
  await using parent = await openParent(tree, real, { make: createParents, existing: before !== undefined })
  if (!before && (await lstat(parent.target).catch(() => undefined)))
    refuse('conflict', `${shownPath(path)} is a link that leads nowhere: remove it first`)
  const written = before?.hash !== hash
  if (written) {
    await writeAtomic(parent.target, bytes, { mode: before?.mode ?? 0o666 & ~process.umask() }).catch(unwritable(path))
    await flushFolder(parent.at)
  }
  const { mtimeMs } = await stat(parent.target)
  return {
    ok: true,
    path: real,
    size: bytes.length,
    hash,
    created: before === undefined,
    mtime: Math.trunc(mtimeMs),
    changed: written ? [...parent.made, real] : [...parent.made],
  }
}

/** A write that failed, as callers should see it. */
export const unwritable =
  (path: string) =>
  (error: unknown): never => {
    if (isFull(error)) throw writeFailure(error)
    const code = codeOf(error) ?? ''
    if (['EACCES', 'EPERM', 'EROFS'].includes(code))
      refuse('conflict', `${shownPath(path)} cannot be written: the permissions of its folder do not allow it`, {
        cause: error,
      })
    throw error
  }
