import { realpath, stat } from 'node:fs/promises'
import { isAbsolute, join, relative } from 'node:path'
import { refuse, type Host, type Place } from '../../../sdk/index.js'
import { contains, inside } from '../../../sdk/node/files/paths.js'
import { installedAt, programNamed } from '../../../sdk/node/programs/installed-at.js'
import { listEnv } from '../../../sdk/node/programs/run.js'
import { workNetwork } from '../../../sdk/node/programs/work-network.js'
import { homeOfProgram, homeOfProgramAtWork, programsInHome } from '../../../sdk/node/wall/home.js'
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
  /** Whether a person approved what it is to do: it may write in the workspace then. */
  readonly acts?: boolean
}

/** What the wall of a connected program asks. */
export type ProgramHost = Pick<Host, 'place' | 'call' | 'serves'>

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

/** Whether somebody who may not land could have written what runs. */
const othersWrite = async ({ serves, call }: ProgramHost): Promise<boolean> =>
  (await serves('members.drivers')) && (await call('members.drivers')).any

/**
 * The command that runs a connected program for no conversation: it sees the workspace, read-only unless it carries out
 * what a person approved, in the network of what runs for none, with its own home folder. Where somebody who may not
 * land could have written what runs, it has a copy of that folder.
 */
export const programBehindWall = async (
  host: ProgramHost,
  { id, program, args, env, cwd = '', shown = [], acts = false }: ConnectedProgram,
): Promise<Walled> => {
  const { workspace, data, hidden, grants } = host.place
  const root = await realpath(workspace)
  const folder = cwd === '' ? root : await inside(root, cwd)
  return walled(
    {
      workspace: root,
      data,
      cwd: folder,
      home: await ((await othersWrite(host)) ? homeOfProgramAtWork : homeOfProgram)(data, id),
      hide: hidden,
      grants,
      sealed: !acts,
      network: workNetwork(host),
      readOnly: (await programFolders({ data }, { id, program, shown })).filter(each => !contains(root, each)),
      shown,
      env: listEnv({ PWD: folder, ...env }),
    },
    // Its folder need not be in the PATH of the wall.
    (await placeOf({ data }, { id, program, shown })) ?? program,
    args,
  )
}
