import type { WallLimits } from './settings.js'

/**
 * How many files a program may open before it asks for more, which it may up to the limit: many look at each possible
 * one.
 */
const USUAL_FILES = 8192
/** When the system runs out of memory it ends these programs before the daemon and what a person runs. */
const FIRST_TO_GO = 500

/** `ulimit -f` counts blocks of 512 bytes. A limit that is stricter already stays. */
const SCRIPT = `
{
  ulimit -c 0
  ulimit -f "$1"
  ulimit -S -n "$2"
  ulimit -H -n "$3"
  echo ${FIRST_TO_GO} > /proc/self/oom_score_adj
  [ -z "$4" ] || echo 0 > "$4"
} 2> /dev/null
shift 4
exec "$@"
`

/** The arguments of `sh` that start a command with these limits, in the control group whose `cgroup.procs` is named. */
export const limitedArgs = (
  { fileSize, openFiles }: WallLimits,
  procs: string | undefined,
  command: readonly string[],
): string[] => [
  '-c',
  SCRIPT,
  'limits',
  String(Math.max(1, Math.floor(fileSize / 512))),
  String(Math.min(USUAL_FILES, openFiles)),
  String(openFiles),
  procs ?? '',
  ...command,
]
