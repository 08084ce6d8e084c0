import { access, constants, realpath } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import { refuse, type Place } from '../../../sdk/index.js'
import { inside } from '../../../sdk/node/files/paths.js'
import { listEnv } from '../../../sdk/node/programs/run.js'
import { homeOfProgram, programHome } from '../../../sdk/node/wall/home.js'
import { walled, type Walled } from '../../../sdk/node/wall/wall.js'

/** A program that a connection names. */
export interface ConnectedProgram {
  /** The connection it belongs to, and whose home folder it has. */
  readonly id: string
  readonly program: string
  readonly args: readonly string[]
  readonly env: { readonly [name: string]: string }
  /** From the workspace. */
  readonly cwd?: string
}

/** Refuses a program that is not there: a name is looked up in the PATH and in its home folder. */
export const assertInstalled = async (
  { data }: Pick<Place, 'data'>,
  { id, program }: Pick<ConnectedProgram, 'id' | 'program'>,
): Promise<void> => {
  if (program.includes('/') && !isAbsolute(program))
    refuse('invalid', `config.command: expected the name or the absolute path of a program, found ${program}`)
  const folders = [...(listEnv().PATH ?? '').split(delimiter), join(programHome(data, id), 'home/.local/bin')]
  const places = isAbsolute(program) ? [program] : folders.map(folder => join(folder, program))
  const found = await Promise.all(
    places.map(path =>
      access(path, constants.X_OK).then(
        () => true,
        () => false,
      ),
    ),
  )
  if (!found.includes(true))
    refuse('missing-program', `there is no program ${program}: install it, or give its absolute path as the command`)
}

/** The command that runs a connected program behind the wall, in the workspace, with its own home folder. */
export const programBehindWall = async (
  { workspace, data, hidden, grants }: Pick<Place, 'workspace' | 'data' | 'hidden' | 'grants'>,
  { id, program, args, env, cwd = '' }: ConnectedProgram,
): Promise<Walled> => {
  const root = await realpath(workspace)
  const folder = cwd === '' ? root : await inside(root, cwd)
  return walled(
    {
      workspace: root,
      data,
      cwd: folder,
      home: await homeOfProgram(data, id),
      hide: hidden,
      grants,
      env: listEnv({ PWD: folder, ...env }),
    },
    program,
    args,
  )
}
