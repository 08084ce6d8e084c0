import { realpath, stat } from 'node:fs/promises'
import { isAbsolute, join, relative } from 'node:path'
import { refuse, type Place } from '../../../sdk/index.js'
import { contains, inside } from '../../../sdk/node/files/paths.js'
import { installedAt, programNamed } from '../../../sdk/node/programs/installed-at.js'
import { listEnv } from '../../../sdk/node/programs/run.js'
import { homeOfProgram, programsInHome } from '../../../sdk/node/wall/home.js'
import { walled, type Walled } from '../../../sdk/node/wall/wall.js'
import type { TurnFile } from '../contract.js'

/** A program that a connection names. */
export interface ConnectedProgram {
  /** The connection it belongs to, and whose home folder it has. */
  readonly id: string
  readonly program: string
  readonly args: readonly string[]
  readonly env: { readonly [name: string]: string }
  /** From the workspace. */
  readonly cwd?: string
  /** Folders that it sees read-only at another place. */
  readonly shown?: readonly TurnFile[]
}

type NamedProgram = Pick<ConnectedProgram, 'id' | 'program' | 'shown'>

/** Refuses a program that is not there: a name is looked up in the PATH and in its home folder. */
export const assertInstalled = async (place: Pick<Place, 'data'>, named: NamedProgram): Promise<void> => {
  const { program } = named
  if (program.includes('/') && !isAbsolute(program))
    refuse('invalid', `config.command: expected the name or the absolute path of a program, found ${program}`)
  if ((await placeOf(place, named)) === undefined)
    refuse('missing-program', `there is no program ${program}: install it, or give its absolute path as the command`)
}

const placeOf = async (
  { data }: Pick<Place, 'data'>,
  { id, program, shown = [] }: NamedProgram,
): Promise<string | undefined> => {
  const folder = shown.find(({ to }) => contains(to, program))
  if (!folder) return programNamed(program, [programsInHome(data, id)])
  const isThere = await stat(join(folder.from, relative(folder.to, program))).catch(() => undefined)
  return isThere?.isFile() ? program : undefined
}

/** The folders that a program needs beside those of the system. */
export const programFolders = async (place: Pick<Place, 'data'>, named: NamedProgram): Promise<string[]> => {
  const path = await placeOf(place, named)
  return path === undefined || named.shown?.some(({ to }) => contains(to, path)) ? [] : installedAt(path)
}

/** The command that runs a connected program behind the wall, in the workspace, with its own home folder. */
export const programBehindWall = async (
  { workspace, data, hidden, grants }: Pick<Place, 'workspace' | 'data' | 'hidden' | 'grants'>,
  { id, program, args, env, cwd = '', shown = [] }: ConnectedProgram,
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
      readOnly: (await programFolders({ data }, { id, program, shown })).filter(each => !contains(root, each)),
      shown,
      env: listEnv({ PWD: folder, ...env }),
    },
    // Its folder need not be in the PATH of the wall.
    (await placeOf({ data }, { id, program, shown })) ?? program,
    args,
  )
}
