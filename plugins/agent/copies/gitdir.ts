import { lstat, mkdir, readdir, readFile, rm, unlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { readPlain } from '../../../sdk/node/files/files.js'
import { inFolder } from '../../../sdk/node/files/in-folder.js'
import { COPY_FORM, ownConfig, SHARED_ATTRIBUTES, type CopyForm } from '../../../sdk/node/wall/gitdir.js'
import type { TreeForm } from './form.js'
import { ignored } from '../../../sdk/index.js'

/** Refs that belong to one checkout or to the daemon: a copy does not start with them. */
const NOT_SHARED = ['refs/stash', 'refs/sandbox/', 'refs/bisect/', 'refs/worktree/', 'refs/rewritten/', 'refs/replace/']
const COMMIT = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/
const MOST_PACKED = 64 * 1024 * 1024
const MOST_SHALLOW = 16 * 1024 * 1024

/**
 * The suffix of the file beside a git dir that lists the refs it was given by its repository; turns cannot reach it.
 */
export const GIVEN_REFS = '.seen'

/** The suffixes of all files beside a git dir. */
export const BESIDE: readonly string[] = [GIVEN_REFS, COPY_FORM]

/** The file that lists the refs that a git dir was given by its repository. */
export const givenRefsOf = (gitdir: string): string => gitdir + GIVEN_REFS

interface Seen {
  readonly refs: { readonly [name: string]: string }
  readonly shallow: readonly string[]
}

const parsePacked = (text: string): [name: string, commit: string][] =>
  text.split('\n').flatMap(line => {
    const [commit = '', name] = line.split(' ')
    return name?.startsWith('refs/') && COMMIT.test(commit) ? [[name, commit]] : []
  })

/** Reads every ref of a repository without a process; `links` are symbolic refs. */
export const refsOf = async (common: string): Promise<{ refs: Map<string, string>; links: Map<string, string> }> => {
  const refs = new Map(parsePacked(readPlain(join(common, 'packed-refs'), MOST_PACKED) ?? ''))
  const links = new Map<string, string>()
  const walk = async (folder: string): Promise<void> => {
    const entries = await readdir(join(common, folder), { withFileTypes: true }).catch(() => [])
    for (const entry of entries) {
      const name = `${folder}/${entry.name}`
      if (entry.isDirectory()) {
        await walk(name)
        continue
      }
      const value = entry.name.endsWith('.lock') ? undefined : readPlain(join(common, name))?.trim()
      if (value?.startsWith('ref: refs/')) links.set(name, value.slice('ref: '.length))
      else if (value !== undefined && COMMIT.test(value)) refs.set(name, value)
    }
  }
  await walk('refs')
  for (const each of [refs, links]) {
    for (const name of each.keys()) if (NOT_SHARED.some(start => name.startsWith(start))) each.delete(name)
  }
  return { refs, links }
}

const linesOf = (text: string | undefined): string[] => text?.split('\n').filter(line => COMMIT.test(line)) ?? []

const packedText = (refs: ReadonlyMap<string, string>): string => {
  const names = [...refs.keys()]
    .map(name => Buffer.from(name))
    .sort(Buffer.compare)
    .map(String)
  return `# pack-refs with: sorted \n${names.map(name => `${refs.get(name)} ${name}\n`).join('')}`
}

/**
 * Creates the git dir of a copy, with its own objects, refs and logs; it borrows the repository's objects and starts
 * with its refs.
 *
 * Runs no program. It links to no file of the repository, so nothing that git does there changes one.
 *
 * @param head HEAD: the copy's own branch and its commit, or a commit alone.
 */
export const createGitdir = async (
  gitdir: string,
  common: string,
  head: { branch?: string; commit: string },
  form?: TreeForm,
): Promise<void> => {
  const { branch, commit } = head
  for (const part of ['objects/info', 'objects/pack', 'refs/heads', 'refs/tags', 'info', 'logs'])
    await mkdir(join(gitdir, part), { recursive: true, mode: 0o700 })
  if (form) await writeForm(gitdir, common, form)
  else await writeFile(join(gitdir, 'config'), ownConfig(common, common))
  await writeFile(join(gitdir, 'objects/info/alternates'), `${join(common, 'objects')}\n`)
  for (const name of ['info/exclude', 'info/attributes']) {
    const text = readPlain(join(common, name))
    if (text !== undefined) await writeFile(join(gitdir, name), text)
  }
  await followRefs(gitdir, common, branch)
  if (branch) await writeOwnRef(gitdir, branch, commit)
  await writeFile(join(gitdir, 'HEAD'), branch ? `ref: refs/heads/${branch}\n` : `${commit}\n`)
}

/** Gives a new git dir the form of its files; without a wall git reads it from there. */
export const writeForm = async (
  gitdir: string,
  common: string,
  { settings, attributes, sparse }: TreeForm,
): Promise<void> => {
  const form: CopyForm = { settings, attributes }
  await writeFile(gitdir + COPY_FORM, JSON.stringify(form), { mode: 0o600 })
  const attributesAt = join(gitdir, SHARED_ATTRIBUTES)
  await writeFile(attributesAt, attributes)
  await writeFile(join(gitdir, 'config'), ownConfig(common, common, { ...form, attributesAt }))
  if (sparse !== undefined) await writeFile(join(gitdir, 'info/sparse-checkout'), sparse)
}

/** Puts a copy's own branch on a commit; only while nothing works in it. */
export const writeOwnRef = async (gitdir: string, branch: string, commit: string): Promise<void> => {
  const path = join(gitdir, 'refs/heads', branch)
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await writeFile(path, `${commit}\n`)
}

/**
 * Updates a copy's refs: removes given refs that it did not change, keeps its own, and adds the repository's current
 * ones.
 */
const merged = (
  now: ReadonlyMap<string, string>,
  seen: Seen['refs'],
  held: ReadonlyMap<string, string>,
): Map<string, string> => new Map([...now, ...[...held].filter(([name, commit]) => seen[name] !== commit)])

/** Updates a copy's refs to those of its repository; only while nothing works in it. Writes nothing if none changed. */
export const followRefs = async (gitdir: string, common: string, branch?: string): Promise<void> => {
  const { refs, links } = await refsOf(common)
  if (branch) refs.delete(`refs/heads/${branch}`)
  const shallow = linesOf(readPlain(join(common, 'shallow'), MOST_SHALLOW))
  const next = JSON.stringify({ refs: Object.fromEntries(refs), shallow } satisfies Seen)
  const last = await readFile(givenRefsOf(gitdir), 'utf8').catch(() => '')
  if (last === next) return
  const seen: Seen = last === '' ? { refs: {}, shallow: [] } : JSON.parse(last)
  const packed = join(gitdir, 'packed-refs')
  const held = new Map(parsePacked(readPlain(packed, MOST_PACKED) ?? ''))
  await replace(packed, packedText(merged(refs, seen.refs, held)))
  const ends = new Set(shallow)
  for (const end of linesOf(readPlain(join(gitdir, 'shallow'), MOST_SHALLOW)))
    if (!seen.shallow.includes(end)) ends.add(end)
  if (ends.size > 0) await replace(join(gitdir, 'shallow'), [...ends, ''].join('\n'))
  else await rm(join(gitdir, 'shallow'), { recursive: true, force: true })
  for (const [name, target] of links) if (name.startsWith('refs/remotes/')) await linkRef(gitdir, name, target)
  await writeFile(givenRefsOf(gitdir), next, { mode: 0o600 })
}

/** Writes a file where a turn can write; replaces whatever is there. */
const replace = async (path: string, text: string): Promise<void> => {
  await rm(path, { recursive: true, force: true })
  await writeFile(path, text, { flag: 'wx' })
}

const linkRef = async (gitdir: string, name: string, target: string): Promise<void> => {
  await solidFolders(gitdir, dirname(name))
  await mkdir(join(gitdir, dirname(name)), { recursive: true, mode: 0o700 })
  await writeFile(join(gitdir, name), `ref: ${target}\n`, { flag: 'wx' }).catch(ignored('a ref that is there stays'))
}

/** Removes everything but folders on the way to a path: through a link the daemon would write elsewhere. */
const solidFolders = async (gitdir: string, path: string): Promise<void> => {
  const parts = path.split('/')
  for (let depth = 1; depth <= parts.length; depth++) {
    const at = join(gitdir, ...parts.slice(0, depth))
    const found = await lstat(at).catch(() => undefined)
    if (found && !found.isDirectory()) await unlink(at)
  }
}

/**
 * Removes FIFOs, links and folders where git expects files in a copy's git dir: git would block on a FIFO and write
 * through a link.
 */
export const clearOwn = async (gitdir: string, branch: string): Promise<void> => {
  const refs = `refs/heads/${branch}`
  for (const folder of [dirname(refs), dirname(`logs/${refs}`)]) await solidFolders(gitdir, folder)
  await clearObjects(gitdir)
  await Promise.all(['commondir', 'gitdir'].map(name => rm(join(gitdir, name), { recursive: true, force: true })))
  await Promise.all(
    ['HEAD', 'index', 'packed-refs', 'shallow', 'logs/HEAD', 'ORIG_HEAD', refs, `logs/${refs}`].map(async name => {
      const path = join(gitdir, name)
      const found = await lstat(path).catch(() => undefined)
      if (found && !found.isFile()) await rm(path, { recursive: true, force: true })
    }),
  )
}

/** Removes everything but plain files and their folders from a copy's own objects. */
const clearObjects = async (gitdir: string): Promise<void> => {
  const objects = join(gitdir, 'objects')
  if (!(await lstat(objects).catch(() => undefined))?.isDirectory()) return
  await Promise.all(
    (await readdir(objects, { withFileTypes: true })).map(async entry => {
      if (!entry.isDirectory()) return rm(join(objects, entry.name), { force: true })
      return inFolder(join(objects, entry.name), async at => {
        const held = await readdir(at, { withFileTypes: true })
        for (const { name } of held.filter(each => !each.isFile() && !each.isDirectory()))
          await rm(join(at, name), { force: true })
      })
    }),
  )
}

/** The commit of a copy's own branch, read without git; undefined if there is none, or it is a symbolic ref. */
export const ownTip = (gitdir: string, branch: string): string | undefined => {
  const name = `refs/heads/${branch}`
  const loose = readPlain(join(gitdir, name))?.trim()
  const commit =
    loose ?? parsePacked(readPlain(join(gitdir, 'packed-refs'), MOST_PACKED) ?? '').find(([each]) => each === name)?.[1]
  return commit !== undefined && COMMIT.test(commit) ? commit : undefined
}

/**
 * Removes a copy's loose objects that its repository has too: the given ones, and those that are loose there. Git
 * writes an object again if it cannot update the timestamp of the other.
 */
export const dropOwnObjects = async (gitdir: string, common: string, ids: readonly string[]): Promise<void> => {
  const taken = new Set(ids)
  const folders = (await readdir(join(gitdir, 'objects')).catch(() => [] as string[])).filter(name =>
    /^[0-9a-f]{2}$/.test(name),
  )
  // Opened as a folder: a link in its place could lead to the repository's own objects.
  await Promise.all(
    folders.map(folder =>
      inFolder(join(gitdir, 'objects', folder), async at => {
        for (const name of await readdir(at)) {
          const isThere =
            taken.has(folder + name)
            || (await lstat(join(common, 'objects', folder, name)).catch(() => undefined))?.isFile()
          if (isThere) await unlink(join(at, name)).catch(ignored('the next sweep removes it'))
        }
      }),
    ),
  )
}
