import { howToWall, WITHOUT_WALL } from '../../sdk/node/wall/absence.js'
import { wallKind, type WallKind } from '../../sdk/node/wall/wall.js'
import type { Config } from './config.js'
import { StartError } from './start-error.js'

/** The wall of this machine; where there is none, refuses the start unless the configuration goes without. */
export const checkedWall = async (
  { needsWall }: Pick<Config, 'needsWall'>,
  log: { warn(message: string): void },
): Promise<WallKind> => {
  const kind = await wallKind()
  if (kind !== 'none') return kind
  const words = `${WITHOUT_WALL}; ${await howToWall()}`
  if (needsWall) throw new StartError(`${words}; with --no-wall the daemon starts all the same`)
  log.warn(words)
  return kind
}
