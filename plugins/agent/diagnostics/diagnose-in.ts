import { access } from 'node:fs/promises'
import { dirname, join, posix } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import { walled } from '../../../sdk/node/wall/wall.js'
import type { LanguageServers } from './language-servers.js'
import type { ProcessAccess } from '../processes/conversation-processes.js'
import { decide } from '../tools/gate.js'
import type { PreparedTurn } from '../turn/environment/environment.js'
import { walledShell, type TreeWall } from '../turn/environment/shell.js'
import type { Turn } from '../turn/turn.js'

const SHELL = '/bin/sh'

/** What a model reads about a file that it changed: the errors that a language server finds in it. */
export type Diagnose = (path: string, text: string, signal: AbortSignal) => Promise<string>

/** What the language servers of a turn stand on. */
interface DiagnoseDeps {
  readonly wall: TreeWall
  readonly access: () => ProcessAccess
  /** The tools that a person always allows in the conversation. */
  readonly remembered: () => ReadonlySet<string>
}

/** The language servers of a turn's tree, behind its wall, while it runs commands without asking. */
export const diagnoseIn =
  (
    servers: LanguageServers,
    turn: Pick<Turn, 'conversationId' | 'entry' | 'record'>,
    prepared: Pick<PreparedTurn, 'root' | 'persona' | 'allowedTools'>,
    { wall, access: reached, remembered }: DiagnoseDeps,
  ): Diagnose =>
  async (given, text, signal) => {
    if (!runsUnasked(turn, prepared, remembered())) return ''
    const { root } = prepared
    const { conversationId } = turn
    const path = posix.normalize(given)
    const begins = JSON.stringify(reached())
    const file = {
      ...{ conversationId, path, text, root, seenRoot: wall.workspace, access: begins },
      repository: await repositoryOf(root, path),
      walled: async (command: string, folder: string) => {
        // It gets no variable of a connection: nobody ran a command of this repository yet.
        const { spec } = walledShell(wall, root, { command, at: folder, env: {} })
        const made = await walled(spec, SHELL, ['-c', command])
        if (JSON.stringify(reached()) !== begins) refuse('conflict', 'the rights of this turn have changed')
        return made
      },
    }
    return servers.after(file, signal)
  }

/** Whether a turn may run commands without asking: a server runs code of the repository, and so of its model. */
const runsUnasked = (
  { entry, record }: Pick<Turn, 'entry' | 'record'>,
  { persona, allowedTools }: Pick<PreparedTurn, 'persona' | 'allowedTools'>,
  remembered: ReadonlySet<string>,
): boolean => {
  const mode = record.mode ?? entry.fields.permissionMode
  const limits = { ...(allowedTools && { allowedTools }), ...(persona && { powers: persona.powers }) }
  const command = { id: '', name: 'Shell', category: 'execute' as const }
  return decide(command, { mode, remembered, attended: false, ...limits }).verdict === 'go'
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
