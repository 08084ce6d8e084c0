import { createHash } from 'node:crypto'
import { access, constants, realpath } from 'node:fs/promises'
import { basename, isAbsolute } from 'node:path'
import { refuse, type Place } from '../../../sdk/index.js'
import { listEnv, needProgram, ownProgram } from '../../../sdk/node/programs/run.js'
import { isTurnWritable } from '../../../sdk/node/programs/turn-writable.js'
import { everyGitdir } from '../../../sdk/node/wall/gitdirs.js'
import { homeOfPeople, homeOfProgram, homeOfWork } from '../../../sdk/node/wall/home.js'
import { walled, type WallNetwork } from '../../../sdk/node/wall/wall.js'
import type { Opening, ShellCommand, TerminalProgram } from './backend.js'
import { WALL } from './processes.js'

const SHELLS = new Set(['bash', 'zsh', 'fish', 'ksh', 'dash', 'ash', 'sh'])

/** The shell of the user who runs the daemon, if it can be used. */
const ownShell = async (): Promise<string> => {
  const named = process.env.SHELL ?? ''
  const fits =
    isAbsolute(named)
    && SHELLS.has(basename(named))
    && !isTurnWritable(await realpath(named).catch(() => named))
    && (await access(named, constants.X_OK).then(
      () => true,
      () => false,
    ))
  return fits ? named : ((await ownProgram('bash')) ?? needProgram('sh'))
}

/**
 * Ends last: when the first process of a terminal ends, the system drops unread output. It ends at once when the
 * terminal itself is gone (SIGHUP, which the system sends to it alone), and the programs of the terminal with it.
 *
 * It handles signals instead of ignoring them, because the shell would inherit ignored ones. After the end it sends its
 * parent SIGCHLD a few times: tmux misses a process that ends while libutempter blocks that signal.
 */
const LAST = `trap : INT QUIT TERM
"$@"
code=$?
(
  trap '' HUP INT QUIT TERM
  for wait in 0.4 0.3 1; do sleep $wait; kill -s CHLD $PPID; done
) </dev/null >/dev/null 2>&1 &
sleep 0.3
exit $code`

const endingLast = async ({ program, args, env }: ShellCommand): Promise<ShellCommand> => ({
  program: await needProgram('sh'),
  args: ['-c', LAST, WALL, program, ...args],
  env,
})

/** The home of programs that see only these folders: no other programs share its caches. */
const homeWithin = (data: string, only: NonNullable<TerminalProgram['only']>) =>
  homeOfProgram(data, `areas-${createHash('sha256').update(JSON.stringify(only)).digest('hex').slice(0, 32)}`)

/**
 * The command that runs a person's shell, or a group's program, behind the wall, with what a turn in the shared tree
 * sees; a program in the network of programs that run for no conversation.
 */
export const shellCommand = async (
  { workspace, data, hidden, grants }: Pick<Place, 'workspace' | 'data' | 'hidden' | 'grants'>,
  { folder, program: runs, command }: Pick<Opening, 'folder' | 'program' | 'command'>,
  network?: WallNetwork,
): Promise<ShellCommand> => {
  if (command) return endingLast(command)
  const shell = await ownShell()
  const only = runs?.only
  const { program, args, env, enforced } = await walled(
    {
      workspace: await realpath(workspace),
      data,
      cwd: folder,
      terminal: true,
      home: await (only ? homeWithin(data, only) : runs ? homeOfWork(data) : homeOfPeople(data)),
      hide: hidden,
      grants,
      ...(runs && network && { network }),
      ...(only ? { only } : { exposed: await everyGitdir(data) }),
      env: listEnv({ TERM: 'xterm-256color', COLORTERM: 'truecolor', SHELL: shell, PWD: folder, ...runs?.env }),
    },
    runs ? await needProgram('sh') : shell,
    runs ? ['-c', runs.script] : [],
  )
  if (only && !enforced)
    refuse('forbidden', 'this machine has no wall that keeps a program to your areas: install bubblewrap')
  return endingLast({ program, args, env })
}
