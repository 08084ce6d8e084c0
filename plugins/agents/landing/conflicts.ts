import { refuse } from '../../../sdk/index.js'
import { shownName } from '../../../sdk/node/byte-names.js'
import { LARGEST_SHOWN } from '../../../sdk/node/files/large-files.js'
import { segmentsOf } from '../../../sdk/node/files/paths.js'
import type { ScratchRepo } from '../work/scratch-repo.js'
import type { ScratchRepos } from '../work/scratch-repos.js'
import { spanOf } from '../work/changes.js'
import type { CopyTree } from '../work/copy-tree.js'
import type { ConflictFile, Conflicts, Side } from '../contract.js'
import { contentOf, looksBinary, textOfSide, type SideEntry } from '../work/file-sides.js'
import { planOf } from './landing.js'
import type { Stuck } from './plan.js'
import { type Repository } from '../work/repository.js'
import { keepMerged, threeWay, type Merged } from './three-way.js'

/** The input for computing conflicts. */
export interface ConflictsRequest {
  readonly scratchRepos: ScratchRepos
  readonly workspace: string
  readonly branch: string
  readonly repositories: readonly Repository[]
  readonly file?: { readonly repo: string; readonly path: string }
  /** Whether the caller may see a file. */
  readonly inside: (repo: string, path: string) => boolean
  readonly signal: AbortSignal
}

const MOST_BYTES = 256 * 1024

/** The current conflicts of all repositories, or of one file. */
export const conflictsOf = async (request: ConflictsRequest): Promise<Conflicts> => {
  const { scratchRepos, repositories, file, signal } = request
  const wanted = file && { repo: file.repo, path: segmentsOf(file.path, { existing: true }).join('/') }
  const files: ConflictFile[] = []
  for (const repository of repositories) {
    if (wanted && wanted.repo !== repository.checkout.repo) continue
    files.push(
      ...(await scratchRepos.with(repository, scratch => filesOf(scratch, repository, request, wanted?.path), signal)),
    )
  }
  if (file && files.length === 0) {
    refuse('not-found', `${file.path} of ${file.repo} has no conflict: omit repo and path to list conflicts`)
  }
  return {
    files,
    mainBranch: Object.fromEntries(
      repositories.flatMap(({ checkout: { repo }, head: { branch } }) =>
        branch === undefined ? [] : [[repo, branch]],
      ),
    ),
  }
}

const filesOf = async (
  scratch: ScratchRepo,
  repository: Repository,
  { workspace, branch, inside }: ConflictsRequest,
  path: string | undefined,
): Promise<ConflictFile[]> => {
  const { to, unread } = await spanOf(scratch, repository)
  const { plan, span } = await planOf(scratch, workspace, repository, { branch, span: 'outstanding' }, to)
  const files: ConflictFile[] = []
  const trees = { base: span.from, agent: to, workspace: repository.head.commit ?? to }
  for (const stuck of plan.stuck) {
    const { repo } = repository.checkout
    const name = shownName(stuck.change.path)
    const from = stuck.change.from === undefined ? undefined : shownName(stuck.change.from)
    if ((path !== undefined && name !== path) || !inside(repo, name)) continue
    const merged = stuck.sides && (await threeWay(scratch, stuck.sides, branch))
    files.push({
      repo,
      path: name,
      reason: stuck.reason,
      ...(stuck.inTheWay && { inTheWay: stuck.inTheWay }),
      ...(from !== undefined && inside(repo, from) && { from }),
      ...(merged && { hunks: merged.hunks }),
      ...(path !== undefined
        && inside(repo, from ?? name)
        && (await sidesOf(scratch, { stuck, unread, merged, trees }))),
    })
  }
  return files
}

/** What the sides of a conflict are made of. */
interface SidesRequest {
  readonly stuck: Stuck
  readonly unread: CopyTree['unread']
  readonly merged: Merged | undefined
  /** The trees whose attributes say what people see of a side. */
  readonly trees: { readonly base: string; readonly agent: string; readonly workspace: string }
}

const sidesOf = async (
  scratch: ScratchRepo,
  { stuck: { change, present, sides }, unread, merged, trees }: SidesRequest,
): Promise<Pick<ConflictFile, 'base' | 'agent' | 'workspace' | 'merged'>> => {
  const { path, from = path, before, after } = change
  return {
    base: await sideOf(scratch, before && { ...before, tree: trees.base, path: from }),
    agent: unread.has(path)
      ? { size: unread.get(path)!, binary: true }
      : await sideOf(scratch, after && { ...after, tree: trees.agent, path }),
    workspace: await sideOf(scratch, present && { ...present, tree: trees.workspace, path }),
    ...(merged
      && sides && {
        merged: await sideOf(scratch, { ...(await keepMerged(scratch, sides, merged)), tree: trees.agent, path }),
      }),
  }
}

const sideOf = async (scratch: ScratchRepo, entry: SideEntry | undefined): Promise<Side> => {
  if (!entry) return { missing: true }
  const bytes = await contentOf(scratch, entry, LARGEST_SHOWN)
  if (bytes !== 'large') return shown(bytes)
  return { size: Number((await scratch.once(['cat-file', '-s', entry.id])).text), binary: true }
}

const shown = (bytes: Buffer): Side => {
  const size = bytes.length
  if (looksBinary(bytes)) return { size, binary: true }
  return { size, text: textOfSide(bytes, MOST_BYTES), ...(size > MOST_BYTES && { truncated: true }) }
}
