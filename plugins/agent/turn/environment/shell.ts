import { mkdir, realpath } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import { contains } from '../../../../sdk/node/files/paths.js'
import { listEnv, type Env, type RunOptions } from '../../../../sdk/node/programs/run.js'
import { homeOfProgram, homeOfProgramApart } from '../../../../sdk/node/wall/home.js'
import type { WallHome } from '../../../../sdk/node/wall/spec.js'
import { holdsAll, runWalled, walled, type WallSpec } from '../../../../sdk/node/wall/wall.js'
import type { SharedProgram, TreeCommand, TreeProgram } from '../../providers/adapter.js'
import { hiddenBy } from '../../personas/worn.js'
import type { BeginCommand, CommandBegun } from './command-logs.js'
import type { ShortenOutput } from '../../outputs/shorten.js'
import type { ShellOptions, ShellResult, ToolContext } from '../../tools/tool.js'
import { readOnlyAround, type Around } from '../../tools/tree.js'

const MOST_OUTPUT = 1024 * 1024
/** Somebody watches it: a flood must not keep the daemon from everything else. */
const MOST_A_SECOND = 16 * 1024 * 1024
const SHELL = '/bin/sh'
/** The command is a separate argument; both outputs go into one stream, in order. */
const BOTH = 'exec /bin/sh -c "$1" 2>&1'
/** The program text is passed as input: arguments have a length limit and are visible to others. */
const SOURCE = 'exec "$1" - 2>&1'

/** The options and callbacks of a turn's programs. */
export interface ProgramListeners {
  readonly onStart: NonNullable<RunOptions['onStart']>
  readonly begun: BeginCommand
  /** Variables that every program of the turn gets. */
  readonly env?: Env
  /** Those of commands alone: a program that goes on when the turn has ended gets none of them. */
  readonly ofCommands?: () => Promise<Env>
  /** The process for a program that the turn may share; left out: none. */
  readonly shared?: (program: TreeProgram) => Promise<SharedProgram | undefined>
  /** Shortens outputs before a model reads them; left out: it reads all of them. */
  readonly shorten?: ShortenOutput | undefined
  /** Called before a program of its own home starts. */
  readonly starts?: () => void
}

/**
 * The workspace around the repositories of a private copy; undefined: the copy holds the whole workspace, or there is
 * none.
 */
export const aroundOf = ({ workspace, copy }: Pick<WallSpec, 'workspace' | 'copy'>): Around | undefined =>
  copy && !holdsAll(copy) ? { workspace, repos: copy.gitdirs.map(({ path }) => path) } : undefined

/** The message of a program that writes on a read-only file system (EROFS). */
const READ_ONLY = /read-only file system/i

/** The wall of a tree, without what each program has of its own. */
export type TreeWall = Omit<WallSpec, 'cwd' | 'env'>

/** A command of the agent's shell in a folder of a tree, for the wall around it. */
export const walledShell = (
  wall: TreeWall,
  root: string,
  { command, at, env }: { readonly command: string; readonly at: string; readonly env: Env },
) => {
  const folder = relative(root, at)
  const seen = join(wall.workspace, folder)
  const spec: WallSpec = { ...wall, cwd: seen, env: listEnv({ ...env, PWD: seen }) }
  return { folder, spec, program: SHELL, args: ['-c', BOTH, SHELL, command] }
}

/**
 * Runs the programs of a turn in one tree: behind the wall, each in its own process group, which ends with the turn.
 */
export const turnPrograms = (
  wall: TreeWall,
  { root, cwd }: { readonly root: string; readonly cwd: string },
  signal: AbortSignal,
  { onStart, begun, env: usual = {}, ofCommands }: ProgramListeners,
): Pick<ToolContext, 'shell' | 'code'> => {
  const around = aroundOf(wall)
  const ran = async (
    script: string,
    argument: string,
    at: string,
    { timeoutMs, onOutput, env = {}, shown }: ShellOptions,
    input?: string,
  ): Promise<ShellResult> => {
    const folder = relative(root, at)
    const seen = join(wall.workspace, folder)
    const what: CommandBegun =
      input === undefined
        ? { command: shown ?? argument, folder }
        : { command: shown ?? input, language: 'javascript', folder }
    const over = begun(what)
    const decoder = new StringDecoder('utf8')
    const options: Omit<RunOptions, 'cwd' | 'env'> = {
      signal,
      timeoutMs,
      maxBytes: MOST_OUTPUT,
      ...(onOutput && { pace: MOST_A_SECOND }),
      onStart,
      ...(input !== undefined && { input }),
      ...(onOutput && { onOutput: piece => onOutput(decoder.write(piece)) }),
    }
    try {
      const result = await runWalled(
        { ...wall, cwd: seen, env: listEnv({ ...usual, ...(await ofCommands?.()), ...env, PWD: seen }) },
        SHELL,
        ['-c', script, SHELL, argument],
        options,
      )
      const { code: exit, truncated, timedOut } = result
      const written = result.stdout.toString() + result.stderr
      const output = around && READ_ONLY.test(written) ? `${written.trimEnd()}\n[${readOnlyAround(around)}]\n` : written
      over({ exit, timedOut, output })
      return { exit, output, truncated, timedOut }
    } catch (error) {
      over({ output: '' })
      throw error
    }
  }
  return {
    shell: (command, at, options) => ran(BOTH, command, at === root ? cwd : at, options),
    code: (source, options) => ran(SOURCE, process.execPath, cwd, options, source),
  }
}

/**
 * The home folder of a connected program, which several conversations share, except `/tmp`. A turn limited to folders
 * gets its own, because the program stores data of other conversations there; one whose work does not land by itself
 * gets a copy, because what it writes there must not run in work that does.
 */
const homeFor = async ({ data, home, only }: Omit<WallSpec, 'cwd' | 'env'>, id: string): Promise<WallHome> => {
  if (only && home) return home
  if (home?.apart) return homeOfProgramApart(data, id, home)
  const own = await homeOfProgram(data, id)
  return home ? { ...own, tmp: home.tmp } : own
}

/** The folder of a container engine: what it keeps for work that does not land by itself is found by no other. */
const keptFor = async (folder: string, { home }: Omit<WallSpec, 'cwd' | 'env'>): Promise<string> => {
  const kept = join(folder, home?.apart?.trust ?? 'lands')
  await mkdir(kept, { recursive: true, mode: 0o700 })
  return realpath(kept)
}

/** A program of a provider's own in one tree: behind the same wall as the agent's shell. */
export const treeCommand = async (
  wall: Omit<WallSpec, 'cwd' | 'env'>,
  root: string,
  start: string,
  { program, args, env, cwd, needs = [], home, engine, readOnly }: TreeProgram,
  begun: BeginCommand,
): Promise<TreeCommand> => {
  const { workspace, copy } = wall
  const place = copy?.alsoAt ?? workspace
  const at = join(place, cwd ?? relative(root, start))
  // A copy is mounted over the workspace, so the folders that the program needs there are mounted again.
  const folders = (await Promise.all(needs.map(folder => realpath(folder).catch(() => [])))).flat()
  const covered = folders.filter(
    folder => copy && contains(workspace, folder) && !wall.shown?.some(({ to }) => contains(to, folder)),
  )
  const kept = engine && (await keptFor(engine, wall))
  const spec: WallSpec = {
    ...wall,
    cwd: at,
    env: listEnv({ ...env, PWD: at }),
    ...(home !== undefined && { home: await homeFor(wall, home) }),
    ...(readOnly && { sealed: true }),
    ...(kept !== undefined && { ordinary: true, exposed: [...(wall.exposed ?? []), kept] }),
    readOnly: [...(wall.readOnly ?? []), ...folders.filter(folder => !contains(workspace, folder))],
    shown: [...(wall.shown ?? []), ...covered.map(folder => ({ from: folder, to: folder }))],
  }
  const command = await walled(spec, program, kept === undefined ? args : [...args, kept])
  const { only } = wall
  const around = aroundOf(wall)
  const seen = command.enforced ? place : root
  const folder = relative(place, at)
  return {
    ...command,
    root,
    ...(only && { folders: only }),
    ...(around && { around }),
    hidden: hiddenBy(wall),
    seen: { root: seen, cwd: join(seen, folder) },
    begun: (what, startedAt) => begun({ command: what, folder, ...(startedAt !== undefined && { startedAt }) }),
  }
}
