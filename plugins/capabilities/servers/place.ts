import { countedFor } from '../../../sdk/node/limits/counted.js'
import type { Walled } from '../../../sdk/node/wall/wall.js'
import { programFolders, programBehindWall, type ProgramHost } from '../agents/program-wall.js'
import type { OpenEntry } from '../records/kinds.js'
import type { StdioServer } from './config.js'

/**
 * The command that starts a server's program, with the home folder of the connection: for a conversation where the
 * programs of its turns run, in their tree and network, otherwise behind a wall of its own in the workspace, where it
 * writes only if it `acts` for a person.
 */
export const serverCommand = async (
  host: ProgramHost,
  { id, shown = [] }: Pick<OpenEntry, 'id' | 'shown'>,
  server: StdioServer,
  { conversationId, acts }: { readonly conversationId?: string | undefined; readonly acts: boolean },
): Promise<Walled> => {
  const { place, call, serves } = host
  const { program, args, env, cwd } = server
  if (conversationId === undefined || !(await serves('agent.walled')))
    return programBehindWall(host, { id, program, args, env, cwd, shown, acts })
  const command = await call('agent.walled', {
    conversationId,
    home: id,
    program,
    args: [...args],
    env: { ...env },
    needs: await programFolders(place, { id, program, shown }),
    ...(cwd !== '' && { cwd }),
  })
  return { ...command, limits: countedFor(host, conversationId) }
}
