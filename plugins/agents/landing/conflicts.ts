import { refuse } from '../../../sdk/index.js'
import { shownName } from '../../../sdk/node/byte-names.js'
import { LARGEST_SHOWN } from '../../../sdk/node/files/large-files.js'
import { segmentsOf } from '../../../sdk/node/files/paths.js'
import type { ScratchRepo } from '../work/scratch-repo.js'
import type { ScratchRepos } from '../work/scratch-repos.js'
import { spanOf } from '../work/changes.js'
import type { CopyTree } from '../work/copy-tree.js'
import type { ConflictFile, Conflicts, Side } from '../contract.js'
import { looksBinary, textOfSide } from '../work/file-sides.js'
import { planOf } from './landing.js'
import type { Stuck } from './plan.js'
import { type Repository } from '../work/repository.js'
import { threeWay, type Merged } from './three-way.js'
import type { TreeFile } from '../work/tree-diff.js'

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
  const { plan } = await planOf(scratch, workspace, repository, { branch, span: 'outstanding' }, to)
  const files: ConflictFile[] = []
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
      ...(path !== undefined && inside(repo, from ?? name) && (await sidesOf(scratch, stuck, unread, merged))),
    })
  }
  return files
}

const sidesOf = async (
  scratch: ScratchRepo,
  { change, present }: Stuck,
  unread: CopyTree['unread'],
  merged: Merged | undefined,
): Promise<Pick<ConflictFile, 'base' | 'agent' | 'workspace' | 'merged'>> => ({
  base: await sideOf(scratch, change.before),
  agent: unread.has(change.path)
    ? { size: unread.get(change.path)!, binary: true }
    : await sideOf(scratch, change.after),
  workspace: await sideOf(scratch, present),
  ...(merged && { merged: shown(merged.content) }),
})

const sideOf = async (scratch: ScratchRepo, entry: TreeFile | undefined): Promise<Side> => {
  if (!entry) return { missing: true }
  const size = Number((await scratch.git(['cat-file', '-s', entry.id])).text)
  if (size > LARGEST_SHOWN) return { size, binary: true }
  return shown((await scratch.git(['cat-file', 'blob', entry.id])).stdout)
}

const shown = (bytes: Buffer): Side => {
  const size = bytes.length
  if (looksBinary(bytes)) return { size, binary: true }
  return { size, text: textOfSide(bytes, MOST_BYTES), ...(size > MOST_BYTES && { truncated: true }) }
}
