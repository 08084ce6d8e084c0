import { lstat, mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { refuse, Refusal, type Context, type Host } from '../../sdk/index.js'
import { reachFor } from '../../sdk/node/access/asked-reach.js'
import { badArchiveOf, nameOfArchive, unpackArchive } from '../../sdk/node/archives/unpack-archive.js'
import { writeFailure } from '../../sdk/node/files/disk.js'
import { openExisting, openFile, shownPath } from '../../sdk/node/files/open-path.js'
import { inside } from '../../sdk/node/files/paths.js'
import { checkOutCommit } from '../../sdk/node/transport/fetched-commit.js'
import type { SkillCommit, SkillFolder } from './contract.js'
import { findPacks, type FoundPack } from './found-packs.js'

const LIMITS = { files: 50_000, bytes: 2 * 1024 ** 3, purpose: 'importing skills' }
/** An archive that unpacks to no more than this may be packed however tightly. */
const FREE_BYTES = 64 * 1024 * 1024
/** The folder of the group in which commits are fetched and archives are unpacked. */
const FETCHED = 'fetched'

/** Runs `work` with the skills of a source; removes fetched and unpacked files afterwards. */
export const withPacksOf = async <T>(
  host: Host,
  from: SkillFolder | SkillCommit,
  context: Context,
  work: (packs: readonly FoundPack[]) => Promise<T>,
): Promise<T> => {
  if (from.kind === 'path') return withPacksAt(host, from.path, context, work)
  const { url, ref, path = '', secret } = from
  return inStaging(host, async root => {
    await checkOutCommit(host, root, { url, ref, ...(secret !== undefined && { secret }) }, LIMITS)
    const folder = path === '' ? root : await inside(root, path).catch(() => undefined)
    if (folder === undefined || !(await isFolder(folder)))
      return refuse('unprocessable', `the commit has no folder ${JSON.stringify(path)}`)
    return work(await packsIn(folder, path || url.replace(/\/+$/, '').replace(/\.git$/, '')))
  })
}

/** Runs `work` with an empty folder of the group's own. */
const inStaging = async <T>({ place }: Pick<Host, 'place'>, work: (root: string) => Promise<T>): Promise<T> => {
  const fetched = join(place.folder, FETCHED)
  await mkdir(fetched, { recursive: true, mode: 0o700 })
  const root = await mkdtemp(join(fetched, 'source-'))
  try {
    return await work(root)
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}

/** Removes the fetched files of interrupted imports. */
export const sweepFetched = ({ place }: Pick<Host, 'place'>): Promise<void> =>
  rm(join(place.folder, FETCHED), { recursive: true, force: true })

const packsIn = async (folder: string, named: string): Promise<readonly FoundPack[]> => {
  const packs = await findPacks(folder, basename(named))
  if (packs.length === 0) refuse('unprocessable', 'expected a folder with a SKILL.md, found none')
  return packs
}

/** The skills of a folder of the workspace, or of an archive there. */
const withPacksAt = async <T>(
  host: Host,
  path: string,
  { caller }: Context,
  work: (packs: readonly FoundPack[]) => Promise<T>,
): Promise<T> => {
  const named = path === '.' ? path : path.replace(/\/$/, '')
  const tree = { root: host.place.workspace, reach: await reachFor(host, caller), readsGit: false }
  await using found = await openExisting(tree, named).catch(error =>
    error instanceof Refusal && error.reason === 'invalid'
      ? refuse('not-found', `nothing in the workspace is named ${shownPath(path)}`, { cause: error })
      : Promise.reject(error),
  )
  if (found.stats.isDirectory()) return await work(await packsIn(join(await realpath(tree.root), found.path), named))
  await using archive = await openFile(found, named)
  return await inStaging(host, async folder => {
    const at = process.platform === 'linux' ? `/proc/self/fd/${archive.fd}` : found.at
    await unpackInto(host, { named, at, folder, size: found.stats.size })
    return work(await packsIn(folder, nameOfArchive(basename(named))))
  })
}

interface NamedArchive {
  readonly named: string
  readonly at: string
  readonly folder: string
  readonly size: number
}

/** Unpacks an archive; refuses one with an entry that cannot be unpacked as it is. */
const unpackInto = async ({ place }: Host, { named, at, folder, size }: NamedArchive): Promise<void> => {
  const limits = { bytes: LIMITS.bytes, entries: LIMITS.files, free: FREE_BYTES }
  const refused = (why: string, reason: 'unprocessable' | 'too-large' = 'unprocessable'): never =>
    refuse(reason, `${shownPath(named)} cannot be imported: ${why}`)
  const { single, unpacking } = await unpackArchive(place, at, { folder, to: '.', size, limits }).catch(error => {
    const bad = badArchiveOf(error)
    if (bad) return refused(bad.message, bad.kind === 'large' ? 'too-large' : 'unprocessable')
    throw writeFailure(error)
  })
  if (single) refused('expected an archive of folders, found one packed file')
  const [first] = unpacking.skipped
  if (first) refused(`the entry ${JSON.stringify(first.path.slice(0, 200))}: ${first.reason}`)
}

const isFolder = (path: string): Promise<boolean> =>
  lstat(path).then(
    found => found.isDirectory(),
    () => false,
  )
