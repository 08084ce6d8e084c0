import { createHash, randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir, realpath, rename, rm, unlink, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { inFolder } from '../../../sdk/node/files/in-folder.js'
import { git } from '../../../sdk/node/programs/git.js'
import { ignored } from '../../../sdk/index.js'

const ID = /^[0-9a-f]{64}$/
const PART = /^[0-9a-f]{2}$/
/** A pointer is smaller than this (git-lfs, docs/spec.md). */
const POINTER_BYTES = 1024
const POINTER = /^version https:\/\/git-lfs\.github\.com\/spec\/v1\n(?:.*\n)*?oid sha256:([0-9a-f]{64})\n/
const ITSELF = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** The folder of an LFS object in a git dir. */
const folderOf = (gitdir: string, id: string): string => join(gitdir, 'lfs/objects', id.slice(0, 2), id.slice(2, 4))

/** Does something with each LFS object of a copy; `at` is its path, through no link. */
const eachOwn = async (gitdir: string, work: (id: string, at: string) => Promise<void>): Promise<void> => {
  const inside = (path: string, fits: RegExp, next: (at: string, name: string) => Promise<void>) =>
    inFolder(path, async at => {
      for (const name of await readdir(at)) if (fits.test(name)) await next(join(at, name), name)
    })
  await inFolder(join(gitdir, 'lfs'), lfs =>
    inside(join(lfs, 'objects'), PART, one => inside(one, PART, other => inside(other, ID, (at, id) => work(id, at)))),
  )
}

const isThere = async (common: string, id: string): Promise<boolean> =>
  (await lstat(join(folderOf(common, id), id)).catch(() => undefined))?.isFile() === true

/** Removes the LFS objects of a copy that its repository has: git-lfs finds them there. */
export const dropOwnLargeFiles = (gitdir: string, common: string): Promise<void> =>
  eachOwn(gitdir, async (id, at) => {
    if (await isThere(common, id)) await unlink(at).catch(ignored('the next import removes it'))
  })

/** The LFS objects that pointers among these objects of a repository name. */
const pointedAt = async (common: string, ids: readonly string[]): Promise<Set<string>> => {
  const env = { GIT_DIR: common }
  const ask = (how: string, some: readonly string[]) =>
    git(common, ['cat-file', how, '--buffer'], { env, input: some.map(id => `${id}\n`).join('') })
  const blobs = (await ask('--batch-check', ids)).text.split('\n').flatMap(line => {
    const [id = '', type, size] = line.split(' ')
    return type === 'blob' && Number(size) < POINTER_BYTES ? [id] : []
  })
  const found = new Set<string>()
  const { stdout } = await ask('--batch', blobs)
  for (let at = 0; at < stdout.length;) {
    const end = stdout.indexOf(10, at)
    const size = Number(stdout.toString('latin1', at, end).split(' ')[2])
    const named = POINTER.exec(stdout.toString('latin1', end + 1, end + 1 + size))?.[1]
    if (named !== undefined) found.add(named)
    at = end + 1 + size + 1
  }
  return found
}

/** Copies what is open to a new file; returns the hash of its content. */
const copyOf = async (source: FileHandle, to: string): Promise<string> => {
  const hash = createHash('sha256')
  await using target = await open(to, 'wx', 0o644)
  for await (const piece of source.createReadStream({ autoClose: false })) {
    hash.update(piece as Buffer)
    await target.writeFile(piece as Buffer)
  }
  await target.datasync()
  return hash.digest('hex')
}

/** Takes one object if its content has the name's hash. */
const take = async (common: string, id: string, at: string): Promise<void> => {
  const [folder, waiting] = [folderOf(common, id), join(common, 'lfs/tmp')]
  for (const path of [folder, waiting]) await mkdir(path, { recursive: true })
  // A turn in the shared tree could have put a link in its place.
  if ((await realpath(folder)) !== folder || (await realpath(waiting)) !== waiting) return
  const source = await open(at, ITSELF).catch(() => undefined)
  if (!source) return
  const temporary = join(waiting, randomBytes(9).toString('hex'))
  try {
    if (!(await source.stat()).isFile() || (await copyOf(source, temporary)) !== id) return
    await rename(temporary, join(folder, id))
  } finally {
    await source.close()
    await rm(temporary, { force: true })
  }
}

/**
 * Imports the LFS objects of a copy that imported pointers name: without them its branch would be of no use once the
 * copy is gone. The name of each is the hash of its content, which is checked.
 */
export const importLargeFiles = async (gitdir: string, common: string, ids: readonly string[]): Promise<void> => {
  const own = new Set<string>()
  await eachOwn(gitdir, async id => void ((await isThere(common, id)) || own.add(id)))
  if (own.size > 0) {
    const wanted = await pointedAt(common, ids)
    await eachOwn(gitdir, async (id, at) => void (own.has(id) && wanted.has(id) && (await take(common, id, at))))
  }
  await dropOwnLargeFiles(gitdir, common)
}
