import { access } from 'node:fs/promises'
import { dirname, join, posix } from 'node:path'
import { walled } from '../../../sdk/node/wall/wall.js'
import type { LanguageServers } from './language-servers.js'
import type { ProcessAccess } from '../processes/conversation-processes.js'
import type { PreparedTurn } from '../turn/environment/environment.js'
import { walledShell, type ProgramListeners, type TreeWall } from '../turn/environment/shell.js'

const SHELL = '/bin/sh'

/** What a model reads about a file that it changed: the errors that a language server finds in it. */
export type Diagnose = (path: string, text: string, signal: AbortSignal) => Promise<string>

/** The language servers of a turn's tree, behind its wall. */
export const diagnoseIn = (
  servers: LanguageServers,
  conversationId: string,
  { root, persona }: Pick<PreparedTurn, 'root' | 'persona'>,
  {
    wall,
    programs,
    access: reached,
  }: {
    readonly wall: TreeWall
    readonly programs: Pick<ProgramListeners, 'env'>
    readonly access: () => ProcessAccess
  },
): Diagnose | undefined => {
  if (persona?.powers.shell === false) return undefined
  return async (given, text, signal) => {
    const path = posix.normalize(given)
    const file = {
      ...{ conversationId, path, text, root, seenRoot: wall.workspace, access: JSON.stringify(reached()) },
      repository: await repositoryOf(root, path),
      walled: (command: string, folder: string) => {
        const { spec } = walledShell(wall, root, { command, at: folder, env: programs.env ?? {} })
        return walled(spec, SHELL, ['-c', command])
      },
    }
    return servers.after(file, signal)
  }
}

/** The repository around a file, by its path from the root. */
const repositoryOf = async (root: string, path: string): Promise<string> => {
  for (let folder = dirname(path); folder !== '.' && folder !== '/'; folder = dirname(folder)) {
    const isRepository = await access(join(root, folder, '.git')).then(
      () => true,
      () => false,
    )
    if (isRepository) return folder
  }
  return '.'
}
