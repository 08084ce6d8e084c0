import { lstat, mkdir, readFile, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { codeOf } from '../../node/files/paths.js'
import { writeAtomic } from '../../node/files/files.js'
import { programFile } from '../../node/programs/package.js'
import { isMadeCommand, commandText, pathFolders } from '../terminal/own-name.js'
import { EXIT, CommandFailure, type Terminal } from '../verb.js'

type Surroundings = Pick<Terminal, 'env' | 'root'>

/** The command that `sandbox link` makes. */
export const commandPath = ({ env }: Pick<Surroundings, 'env'>): string =>
  join(env.HOME || homedir(), '.local', 'bin', 'sandbox')

/** Whether something lies at a path. */
const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  )

/** Makes the command, unless another program has its name; returns whether a shell finds it. */
export const makeCommand = async (
  terminal: Surroundings,
): Promise<{ path: string; onPath: boolean; changed: boolean }> => {
  const path = commandPath(terminal)
  if ((await isThere(path)) && !isMadeCommand(path))
    throw new CommandFailure(EXIT.refused, `${path} is there already and was not made by this program: remove it first`)
  const text = commandText(programFile('sdk/cli.js'))
  const changed = (await readFile(path, 'utf8').catch(() => '')) !== text
  if (changed) {
    await mkdir(dirname(path), { recursive: true })
    await writeAtomic(path, text, { mode: 0o755, flush: true })
  }
  return { path, changed, onPath: pathFolders(terminal.env.PATH ?? '').includes(dirname(path)) }
}

/** Removes the command if this program made it; returns its path. */
export const removeCommand = async (terminal: Pick<Surroundings, 'env'>): Promise<string | undefined> => {
  const path = commandPath(terminal)
  if (!isMadeCommand(path)) return undefined
  await rm(path).catch(error => {
    if (codeOf(error) !== 'ENOENT') throw error
  })
  return path
}

/** How a shell finds the command from now on. */
export const pathHint = (path: string): string =>
  `your shell does not look there yet: add export PATH="${dirname(path)}${delimiter}$PATH" to your profile, or sign in `
  + 'again'
