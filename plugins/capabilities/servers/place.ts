import type { Host } from '../../../sdk/index.js'
import type { Walled } from '../../../sdk/node/wall/wall.js'
import { programFolders, programBehindWall } from '../agents/program-wall.js'
import type { OpenEntry } from '../records/kinds.js'
import type { StdioServer } from './config.js'

/**
 * The command that starts a server's program, with the home folder of the connection: for a conversation where the
 * programs of its turns run, in their tree and network, otherwise behind a wall of its own in the workspace.
 */
export const serverCommand = async (
  { place, call, serves }: Pick<Host, 'place' | 'call' | 'serves'>,
  { id, shown = [] }: Pick<OpenEntry, 'id' | 'shown'>,
  server: StdioServer,
  conversationId: string | undefined,
): Promise<Walled> => {
  const { program, args, env, cwd } = server
  if (conversationId === undefined || !(await serves('agent.walled')))
    return programBehindWall(place, { id, program, args, env, cwd, shown })
  return call('agent.walled', {
    conversationId,
    home: id,
    program,
    args: [...args],
    env: { ...env },
    needs: await programFolders(place, { id, program, shown }),
    ...(cwd !== '' && { cwd }),
  })
}
