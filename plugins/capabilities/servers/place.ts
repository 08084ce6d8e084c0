import type { Host } from '../../../sdk/index.js'
import type { Walled } from '../../../sdk/node/wall/wall.js'
import { programBehindWall } from '../agents/program-wall.js'
import type { StdioServer } from './config.js'

/**
 * The command that starts a server's program, behind the wall in the workspace, with the home folder of the connection.
 *
 * A conversation's server is to run where the programs of its turns do, in their tree and network: that is for the
 * group that runs turns to say, and to be asked here.
 */
export const serverCommand = (
  { place }: Pick<Host, 'place'>,
  id: string,
  { program, args, env, cwd }: StdioServer,
  _conversationId: string | undefined,
): Promise<Walled> => programBehindWall(place, { id, program, args, env, cwd })
