import { lstat, mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import { refuse, type Context, type Host } from '../../sdk/index.js'
import { accessViewFor } from '../../sdk/node/access/asked-reach.js'
import { inside } from '../../sdk/node/files/paths.js'
import { checkOutCommit } from '../../sdk/node/transport/fetched-commit.js'
import type { SkillCommit, SkillFolder } from './contract.js'
import { findPacks, type FoundPack } from './found-packs.js'

const LIMITS = { files: 50_000, bytes: 2 * 1024 ** 3, purpose: 'importing skills' }
/** The folder of the group in which commits are fetched. */
const FETCHED = 'fetched'

/** Runs `work` with the skills of a source; removes fetched files afterwards. */
export const withPacksOf = async <T>(
  host: Host,
  from: SkillFolder | SkillCommit,
  context: Context,
  work: (packs: readonly FoundPack[]) => Promise<T>,
): Promise<T> => {
  if (from.kind === 'path') return work(await packsIn(await folderInWorkspace(host, from.path, context), from.path))
  const { url, ref, path = '', secret } = from
  const fetched = join(host.place.folder, FETCHED)
  await mkdir(fetched, { recursive: true, mode: 0o700 })
  const root = await mkdtemp(join(fetched, 'commit-'))
  try {
    await checkOutCommit(host, root, { url, ref, ...(secret !== undefined && { secret }) }, LIMITS)
    const folder = path === '' ? root : await inside(root, path).catch(() => undefined)
    if (folder === undefined || !(await isFolder(folder)))
      return refuse('unprocessable', `the commit has no folder ${JSON.stringify(path)}`)
    return await work(await packsIn(folder, path || url.replace(/\/+$/, '').replace(/\.git$/, '')))
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

const folderInWorkspace = async (host: Host, path: string, { caller }: Context): Promise<string> => {
  const missing = (): never => refuse('not-found', `the workspace has no folder ${JSON.stringify(path.slice(0, 200))}`)
  const folder = await inside(host.place.workspace, path).catch(missing)
  const seen = await accessViewFor(host, caller)
  if (!(await seen.sees(relative(await realpath(host.place.workspace), folder))) || !(await isFolder(folder)))
    return missing()
  return folder
}

const isFolder = (path: string): Promise<boolean> =>
  lstat(path).then(
    found => found.isDirectory(),
    () => false,
  )
