import { ignored, refuse, type Handlers } from '../../../sdk/index.js'
import type { Objects } from '../objects/objects.js'
import { fileDiffOf, sideOfEntry } from '../objects/sides.js'
import { nothingLike, treeChanges } from '../objects/tree-changes.js'
import { pathFor, type OpenRepo, type Repositories } from '../repositories/repositories.js'
import type { LandedBy } from '../changes/landed-by.js'
import { blameOf } from './blame.js'
import type { CommitCalls } from './contract.js'
import { commitLog } from './log.js'

const MOST_FILES = 5000

/** Both ends of a comparison: `base`, or the first parent, or nothing before the first commit. */
export const commitEnds = async (objects: Objects, { git }: OpenRepo, sha: string, base: string | undefined) => {
  const to = await objects.commit(git, sha)
  if (base !== undefined) return { from: await objects.commit(git, base), to }
  const parent = await objects.read(git, `${to}^1`, 0)
  return { from: typeof parent === 'string' ? nothingLike(to) : parent.id, to }
}

/** Serves the history of commits. */
export const commitCalls = (
  repositories: Repositories,
  objects: Objects,
  landedBy: LandedBy,
): Handlers<CommitCalls> => ({
  'GET /git/{repo}/log': async ({ repo, ...query }, { caller }) => {
    const opened = await repositories.open(repo, caller)
    const log = await commitLog(objects, opened, query)
    const shas = log.commits.map(({ sha }) => sha)
    const landed = await landedBy.byCommits(opened, shas).catch(ignored('the commits are shown without it'))
    if (!landed || landed.origins.length === 0) return log
    const ids = new Map(landed.origins.map(origin => [origin.sha, origin.ids]))
    const commits = log.commits.map(commit => {
      const origins = ids.get(commit.sha)
      return origins ? { ...commit, origins } : commit
    })
    return { ...log, commits, originAgents: landed.agents }
  },
  'GET /git/{repo}/commit-diff': async ({ repo, sha, base }, { caller }) => {
    const opened = await repositories.open(repo, caller)
    const { from, to } = await commitEnds(objects, opened, sha, base)
    const files = await treeChanges(opened, from, to)
    // A commit that changes nothing inside their areas does not exist for limited people.
    if (opened.only && base === undefined && files.length === 0)
      refuse('not-found', `${opened.repo} has no commit ${sha}`)
    return {
      files: files.slice(0, MOST_FILES),
      ...(files.length > MOST_FILES && { truncated: files.length - MOST_FILES }),
    }
  },
  'GET /git/{repo}/commit-file-diff': async ({ repo, sha, base, ...asked }, { caller }) => {
    const opened = await repositories.open(repo, caller)
    const path = await pathFor(opened, asked.path)
    const earlier = asked.from === undefined ? path : await pathFor(opened, asked.from)
    const { from, to } = await commitEnds(objects, opened, sha, base)
    const [before, after] = await Promise.all([
      objects.entry(opened.git, from, earlier),
      objects.entry(opened.git, to, path),
    ])
    const [one, other] = await Promise.all([sideOfEntry(objects, opened, before), sideOfEntry(objects, opened, after)])
    if (one === undefined && other === undefined) refuse('not-found', `${path} of ${repo} is on neither side`)
    return fileDiffOf(one, other)
  },
  'GET /git/{repo}/blame': async ({ repo, ...query }, { caller }) => {
    const opened = await repositories.open(repo, caller)
    const blame = await blameOf(objects, opened, query)
    // Who landed a line only adds to a blame.
    const landed = await landedBy.byCommit(opened, blame.path).catch(() => undefined)
    return {
      ...blame,
      hunks: blame.hunks.map(hunk => {
        const conversationId = landed?.(hunk.sha)
        return { ...hunk, ...(conversationId !== undefined && { conversationId }) }
      }),
    }
  },
})
