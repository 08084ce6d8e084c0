import { join, relative } from 'node:path'
import { contains } from '../paths.js'
import { run, type RunOptions, type RunResult } from '../run.js'
import { builder, wallKind } from './builders.js'
import { homeEnv } from './home.js'
import type { Walled, WallKind, WallSpec } from './spec.js'
import { mountsOf } from './view.js'

export { wallKind } from './builders.js'
export type { Walled, WallGitdir, WallKind, WallSpec } from './spec.js'

/**
 * The command that runs a program behind the wall of the operating system.
 *
 * Inside, nothing of the machine is there but what `mountsOf` lists, other processes are absent, and there are no
 * capabilities. Start it with the answered environment and nothing else. `kind` is for tests.
 */
export const walled = async (
  spec: WallSpec, program: string, args: readonly string[], kind?: WallKind,
): Promise<Walled> => {
  const build = await builder(kind ?? (await wallKind()))
  const env = spec.home ? { ...spec.env, ...homeEnv(spec.home, spec.env) } : spec.env
  if (build) return { ...build(await mountsOf(spec), spec.cwd, env, [program, ...args], spec), enforced: true }
  const { copy, cwd, workspace } = spec
  const place = copy && contains(workspace, cwd) ? join(copy.dir, relative(workspace, cwd)) : cwd
  return { program, args: [...args], env, cwd: place, enforced: false }
}

/** Runs a program behind the wall to its end. */
export const runWalled = async (
  spec: WallSpec, program: string, args: readonly string[], options: Omit<RunOptions, 'cwd' | 'env'> = {},
  kind?: WallKind,
): Promise<RunResult> => {
  const command = await walled(spec, program, args, kind)
  return run(command.program, command.args, { ...options, cwd: command.cwd, env: command.env, walled: command.enforced })
}
