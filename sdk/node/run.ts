import { access, constants as fsConstants, stat } from 'node:fs/promises'
import { refuse } from '../refusal.js'
import { codeOf } from './paths.js'
import { trusted } from './list-env.js'
import { type RunOptions, type RunResult, runHere } from './run-here.js'
import { runner } from './runner.js'

export { listEnv, type Env } from './list-env.js'
export { killWalled, signalGroup, type RunOptions, type RunResult } from './run-here.js'

/** The Debian package of a program whose package has another name. */
const PACKAGES: { readonly [program: string]: string } = {
  bwrap: 'bubblewrap', unshare: 'util-linux', setpriv: 'util-linux', prlimit: 'util-linux', rg: 'ripgrep',
  node: 'nodejs', sh: 'dash', pdftotext: 'poppler-utils',
}

const SYSTEM = ['/usr/local/bin', '/usr/bin', '/bin', '/usr/sbin', '/sbin']
const found = new Map<string, string>()

/**
 * The absolute path of a program the daemon itself runs, the system's first, and the same one for as long as it runs:
 * a turn may write to folders of the PATH. Undefined when there is none.
 */
export const ownProgram = async (name: string): Promise<string | undefined> => {
  const known = found.get(name)
  if (known) return known
  for (const folder of [...SYSTEM, ...trusted(process.env.PATH ?? '')]) {
    const path = `${folder}/${name}`
    if (!(await access(path, fsConstants.X_OK).then(() => true, () => false))) continue
    found.set(name, path)
    return path
  }
  return undefined
}

/** Refuses with the program's name and how to install it. */
export const missingProgram = (program: string): never => {
  const name = program.split('/').at(-1) ?? program
  const how = `install it (Debian: apt-get install ${PACKAGES[name] ?? name})`
  return refuse('missing-program', `expected the program ${name} and found none: ${how}`)
}

const failedStart = async (error: unknown, program: string, cwd: string): Promise<never> => {
  if (codeOf(error) !== 'ENOENT' || (error as NodeJS.ErrnoException).syscall?.startsWith('spawn') !== true) throw error
  const folder = await stat(cwd).catch(() => undefined)
  if (folder?.isDirectory()) return missingProgram(program)
  throw new Error(`cannot start ${program}: its working folder is gone`, { cause: error })
}

let starts = Promise.resolve()

/** One start for each turn of the loop: it stands still until a program is there, and many that start at once would hold it up for long. */
const inTurn = (): Promise<void> => (starts = starts.then(() => new Promise(resolve => setImmediate(resolve))))

/**
 * Runs a program to its end in a process group of its own, which is gone when this answers.
 *
 * When the time is over the result says so; an aborted signal is thrown. Either way the group is asked to end and,
 * after 2 s, killed; behind a wall it is killed at once.
 */
export const run = async (program: string, args: readonly string[], options: RunOptions): Promise<RunResult> => {
  const far = runner()
  if (!far) await inTurn()
  options.signal?.throwIfAborted()
  try {
    return await (far ? far.run(program, args, options) : runHere(program, args, options))
  } catch (error) {
    return failedStart(error, program, options.cwd)
  }
}
