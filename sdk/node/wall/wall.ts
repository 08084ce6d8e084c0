import { join, relative } from 'node:path'
import { contains } from '../files/paths.js'
import { ownProgram, run, type Env, type RunOptions, type RunResult } from '../programs/run.js'
import { builder, wallKind } from './builders.js'
import { homeEnv } from './home.js'
import { mountingLater, isSuperuser } from './later-mounts.js'
import { markOf } from './mark.js'
import type { EnteredNetwork, Mount, Walled, WallKind, WallSpec } from './spec.js'
import { resolverPath } from './system.js'
import { trustEnv, trustMounts } from './trust.js'
import { mountsOf } from './view.js'

/** Bytes at the end of a program's output that are searched for its last line. */
const LAST_WORDS = 4096

export { wallKind } from './builders.js'
export { holdsAll } from './view.js'
export type { EnteredNetwork, Walled, WallGitdir, WallKind, WallNetwork, WallSpec } from './spec.js'

/**
 * The command that runs a program behind a wall.
 *
 * Inside, only the mounts of `mountsOf` are visible, there are no other processes and no capabilities. Start it with
 * exactly the returned environment. `kind` is for tests.
 */
export const walled = async (
  spec: WallSpec,
  program: string,
  args: readonly string[],
  kind?: WallKind,
): Promise<Walled> => {
  const build = await builder(kind ?? (await wallKind()))
  const env = withPath(spec.home ? { ...spec.env, ...homeEnv(spec.home, spec.env) } : spec.env, spec.path)
  if (build) {
    const [mounts, mark, network] = await Promise.all([mountsOf(spec), markOf(spec.data), spec.network?.enter()])
    const inUserNamespace = network?.inUserNamespace ?? false
    const how = { ...spec, mark, inUserNamespace: inUserNamespace || (spec.later === true && !isSuperuser()) }
    const command = build(
      [...mounts, ...resolved(network), ...trustMounts(network)],
      spec.cwd,
      { ...network?.env, ...trustEnv(network), ...env },
      [program, ...args],
      how,
    )
    const held = spec.later ? await mountingLater(spec.data, command, inUserNamespace) : command
    return limited(spec, { ...(network ? within(network, held) : held), enforced: true })
  }
  const { copy, cwd, workspace } = spec
  const place = copy && contains(workspace, cwd) ? join(copy.dir, relative(workspace, cwd)) : cwd
  return limited(spec, { program, args: [...args], env, cwd: place, enforced: false })
}

const withPath = (env: Env, path: readonly string[] = []): Env =>
  path.length > 0 ? { ...env, PATH: [...(env.PATH ?? '').split(':').filter(Boolean), ...path].join(':') } : env

/** Mounts the network's `/etc/resolv.conf`. */
const resolved = (network: EnteredNetwork | undefined): Mount[] => {
  const path = network?.resolver === undefined ? undefined : resolverPath()
  return path === undefined ? [] : [['show', network!.resolver!, path, 'name servers']]
}

/** The same command, started in a network. */
const within = (
  { command: [enter, ...how] }: EnteredNetwork,
  { program, args, ...rest }: Omit<Walled, 'enforced'>,
): Omit<Walled, 'enforced'> => ({ ...rest, program: enter, args: [...how, program, ...args] })

/** The same command, started within the limits. */
const limited = async ({ limits }: WallSpec, command: Walled): Promise<Walled> => {
  const shell = limits && (await ownProgram('sh'))
  return shell === undefined
    ? command
    : { ...command, program: shell, args: limits!.args([command.program, ...command.args]), limits: limits! }
}

/** Runs a program behind the wall to its end. */
export const runWalled = async (
  spec: WallSpec,
  program: string,
  args: readonly string[],
  options: Omit<RunOptions, 'cwd' | 'env'> = {},
  kind?: WallKind,
): Promise<RunResult> => {
  const command = await walled(spec, program, args, kind)
  const { limits } = spec
  const onStart: RunOptions['onStart'] = limits
    ? (pid, over) => {
        limits.begun(pid, over)
        options.onStart?.(pid, over)
      }
    : options.onStart
  try {
    const result = await run(command.program, command.args, {
      ...options,
      onStart,
      cwd: command.cwd,
      env: command.env,
      walled: command.enforced,
    })
    limits?.ended({ code: result.code, output: result.stdout.subarray(-LAST_WORDS).toString() + result.stderr })
    return result
  } finally {
    // Throws if a limit ended it, so that callers see the reason.
    limits?.check()
  }
}
