import { homedir } from 'node:os'
import { refuse, type Place } from '../../../sdk/index.js'
import { contains } from '../../../sdk/node/files/paths.js'
import { installedAt } from '../../../sdk/node/programs/installed-at.js'
import { isOwnProgram, ownProgram } from '../../../sdk/node/programs/own-programs.js'

const HOW =
  'install llama.cpp (github.com/ggml-org/llama.cpp/releases, or the package manager where it has one; Debian 12 has '
  + 'none), so that llama-server is on the PATH of the daemon, or set models.server in the file that --config names to '
  + 'its path'

/** The program that serves local models: the one that the deployment names, else that on the PATH. */
export const modelProgram = async (place: Pick<Place, 'models'>): Promise<string | undefined> => {
  const named = place.models?.server
  if (named === undefined) return ownProgram('llama-server')
  return (await isOwnProgram(named, { named: true })) ? named : undefined
}

/** The program that serves local models, and the folders it needs; refuses where there is none. */
export const needModelProgram = async (
  place: Pick<Place, 'models' | 'workspace' | 'data'>,
): Promise<{ program: string; folders: string[] }> => {
  const program = await modelProgram(place)
  const named = place.models?.server
  if (program === undefined)
    return refuse(
      'missing-program',
      named === undefined
        ? `expected the program llama-server and found none: ${HOW}`
        : `expected the program ${named} (models.server), and found none there that only the daemon's user can change: `
            + HOW,
    )
  const folders = await installedAt(program)
  const open = folders.find(folder => [place.workspace, place.data, homedir()].some(path => contains(folder, path)))
  if (open !== undefined)
    refuse(
      'missing-program',
      `${program} is in ${open}, which a model server must not see: put it in a folder of its own`,
    )
  return { program, folders }
}
