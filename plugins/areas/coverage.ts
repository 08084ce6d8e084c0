import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { covers, isWithin, type Context, type Host } from '../../sdk/index.js'
import { isClosedName } from '../../sdk/node/files/closed-names.js'
import { WorkspacePaths } from '../../sdk/node/files/workspace-paths.js'
import { limitsOf } from '../../sdk/node/access/access-view.js'
import type { ConversationState } from '../agent/contract.js'
import type { StoredArea } from './area-file.js'
import type { CoveredFolder, CoveredRepo } from './contract.js'
import { grantedFolders, problemOf } from './folders.js'

const MOST_FILES = 100_000

/** What an area covers now. */
export interface Coverage {
  readonly repos: CoveredRepo[]
  readonly folders: CoveredFolder[]
  readonly conversations: number
}

/** Finds what an area covers; groups that are not installed contribute nothing. */
export const coverageOf = async (
  { call, serves, place: { workspace } }: Pick<Host, 'call' | 'serves' | 'place'>,
  area: StoredArea,
  context: Context,
): Promise<Coverage> => {
  const { signal } = context
  const [reach, known, states] = await Promise.all([
    grantedFolders(workspace, area),
    (await serves('checkouts.repositories')) ? call('checkouts.repositories', undefined, { signal }) : { repos: [] },
    conversationsFor({ call, serves }, context),
  ])
  const places = new WorkspacePaths(workspace)
  const starts = await Promise.all(states.map(({ conversation }) => places.of(conversation.startIn)))
  const folders: CoveredFolder[] = []
  for (const path of area.folders) {
    const exists = (await problemOf(workspace, path)) === undefined
    folders.push({ path, exists, ...(exists && { files: await filesIn(workspace, path, signal) }) })
  }
  return {
    repos: known.repos.flatMap((repo): CoveredRepo[] => {
      const covered = covers(reach, repo)
      return covered === 'none' ? [] : [{ repo, covered }]
    }),
    folders,
    conversations: starts.filter(start => start !== undefined && reach.some(({ path }) => isWithin(path, start)))
      .length,
  }
}

/** The conversations that a caller sees. */
const conversationsFor = async (
  { call, serves }: Pick<Host, 'call' | 'serves'>,
  context: Context,
): Promise<ConversationState[]> => {
  const { signal } = context
  if (!(await serves('agent.conversations'))) return []
  const { conversations } = await call('agent.conversations', undefined, { signal })
  if (!limitsOf(context.caller)) return conversations
  const named = conversations.map(({ conversation }) => conversation.id)
  const { ids } = await call('agent.visible', { ids: named }, { as: context, signal })
  const there = new Set(ids)
  return conversations.filter(({ conversation }) => there.has(conversation.id))
}

/**
 * Counts the files below a folder, yielding to other work between folders; files of git and of the sandbox do not
 * count.
 */
const filesIn = async (workspace: string, folder: string, signal: AbortSignal): Promise<number> => {
  let files = 0
  const left = [folder === '.' ? '' : folder]
  for (let at = left.pop(); at !== undefined && files < MOST_FILES; at = left.pop()) {
    signal.throwIfAborted()
    for (const entry of await readdir(join(workspace, at), { withFileTypes: true }).catch(() => [])) {
      const path = at ? `${at}/${entry.name}` : entry.name
      if (isClosedName(path.split('/'))) continue
      if (entry.isDirectory()) left.push(path)
      else files += 1
    }
  }
  return Math.min(files, MOST_FILES)
}
