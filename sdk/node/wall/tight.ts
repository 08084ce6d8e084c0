import { statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { contains } from '../files/paths.js'
import { ownProgram, type Env } from '../programs/run.js'
import { tightBuilder, wallKind } from './builders.js'
import { markOf } from './mark.js'
import { real } from './sources.js'
import type { Mount, WallKind } from './spec.js'

/** What a process behind a tight wall sees, and nothing else: each path of the machine with its place inside. */
export interface TightSpec {
  /** The daemon's data folder. */
  readonly data: string
  readonly read: readonly { readonly from: string; readonly to: string }[]
  readonly write: readonly { readonly from: string; readonly to: string }[]
  /** Mounts before these, such as those of the program. */
  readonly program: readonly Mount[]
  /** Folders and files inside of what is shown that are covered. */
  readonly hide?: readonly string[]
  readonly cwd: string
  /** The whole environment. */
  readonly env: Env
  /** The most bytes of memory that it may map for writing, and of files that it holds open. */
  readonly limits: { readonly data: number; readonly openFiles: number; readonly fileSize: number }
}

/** The command to start. */
export interface TightCommand {
  readonly program: string
  readonly args: readonly string[]
  readonly env: Env
}

/**
 * Each call of `ulimit` must succeed: a process without a limit is not started. The priority is lowered here, because
 * from outside that would miss what was forked before.
 */
const LIMITED = `
set -e
ulimit -c 0
ulimit -d "$1"
ulimit -n "$2"
ulimit -f "$3"
echo 700 > /proc/self/oom_score_adj || :
shift 3
exec nice -n 10 "$@"
`

/**
 * The command that runs a program behind a wall without a network, in which only the named paths are; undefined: this
 * machine can build none.
 */
export const tightlyWalled = async (
  spec: TightSpec,
  program: string,
  args: readonly string[],
  kind?: WallKind,
): Promise<TightCommand | undefined> => {
  const [build, shell] = await Promise.all([tightBuilder(kind ?? (await wallKind())), ownProgram('sh')])
  if (!build || shell === undefined) return undefined
  const at =
    (operation: 'show' | 'bind') =>
    async (path: { from: string; to: string }): Promise<Mount> => [operation, await real(path.from), path.to]
  const [read, write, mark] = await Promise.all([
    Promise.all(spec.read.map(at('show'))),
    Promise.all(spec.write.map(at('bind'))),
    markOf(spec.data),
  ])
  const covered = (spec.hide ?? []).map((to): Mount => {
    const found = [...read, ...write].findLast(([, , at]) => contains(at, to))
    const kind = found && statSync(join(found[1], relative(found[2], to)), { throwIfNoEntry: false })
    return kind?.isDirectory() ? ['empty', '', to] : ['hide', '', to]
  })
  const mounts: Mount[] = [...spec.program, ...read, ...write, ...covered, ['seal', '', '/']]
  const command = build(mounts, spec.cwd, spec.env, [program, ...args], { mark, tight: true })
  const { data, openFiles, fileSize } = spec.limits
  return {
    program: shell,
    args: [
      '-c',
      LIMITED,
      'limits',
      String(Math.floor(data / 1024)),
      String(openFiles),
      String(Math.max(1, Math.floor(fileSize / 512))),
      command.program,
      ...command.args,
    ],
    env: command.env,
  }
}
