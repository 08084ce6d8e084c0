import { closeSync, constants, existsSync, openSync, readSync, realpathSync } from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packageFolder } from '../../node/programs/package.js'
import { quoted } from './text.js'

const real = (path: string): string | undefined => {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}

/** Folders that npm adds to PATH only for programs that it runs; a person's shell does not have them. */
export const OF_NPM = /node_modules[/\\](?:\.bin|.*node-gyp-bin)$/

/** The folders of PATH that a person's shell has. */
export const pathFolders = (PATH: string, startedByNpm = true): string[] =>
  PATH.split(delimiter).filter(folder => folder !== '' && !(startedByNpm && OF_NPM.test(folder)))

/** The part of the environment that says how a program was started. */
export interface StartedWith {
  readonly PATH?: string | undefined
  /** The command as a person typed it, or its path: shells set it for what they start. */
  readonly _?: string | undefined
  /** Set for all that npm starts. */
  readonly npm_execpath?: string | undefined
  /** The folder whose commands npm runs, which `--prefix` names. */
  readonly npm_config_local_prefix?: string | undefined
}

const LINK = '#!/bin/sh\n# Made by "sandbox link"; "sandbox uninstall" removes it.\n'

/** A command that starts a program with the Node that runs now: the one on PATH may be older. */
export const commandText = (program: string): string =>
  `${LINK}exec ${quoted(process.execPath)} ${quoted(real(program) ?? program)} "$@"\n`

/** Whether a file is a command that `commandText` made, of any program of this project. */
export const isMadeCommand = (path: string): boolean => textOf(path).startsWith(LINK)

/** The beginning of a file. The command that was typed may be Node itself, of 100 MB. */
const textOf = (path: string): string => {
  let file: number | undefined
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const bytes = Buffer.alloc(8192)
    return bytes.toString('utf8', 0, readSync(file, bytes))
  } catch {
    return ''
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** Whether a command starts this program. */
const startsIt = (command: string, program: string): boolean =>
  real(command) === program || (isMadeCommand(command) && textOf(command).endsWith(` ${quoted(program)} "$@"\n`))

/** The folder in which npm looks for a package's own commands: the nearest one with a package or its libraries. */
const npmFolder = (cwd: string): string => {
  for (let folder = cwd; ; folder = dirname(folder))
    if (['package.json', 'node_modules'].some(name => existsSync(join(folder, name))) || folder === dirname(folder))
      return folder
}

/**
 * The command that runs this program again from a folder: `sandbox` if it is on PATH, `npx sandbox` where npm finds it
 * in that folder, npx with the folder that it was told, the path that was typed, else the full command. Elsewhere npx
 * would offer an unrelated public package of that name.
 */
export const programName = (
  { PATH = '', _: typed, npm_execpath, npm_config_local_prefix: prefix }: StartedWith,
  cwd: string,
  program: string,
): string => {
  const found = real(program)
  const isIt = (folder: string) => found !== undefined && startsIt(join(folder, 'sandbox'), found)
  if (pathFolders(PATH, npm_execpath !== undefined).some(isIt)) return 'sandbox'
  const from = npmFolder(cwd)
  if (found !== undefined && real(from) === packageFolder(dirname(found))) return NPX
  for (let folder = from; ; folder = dirname(folder)) {
    if (isIt(join(folder, 'node_modules', '.bin'))) return NPX
    if (folder === dirname(folder)) break
  }
  if (npm_execpath && prefix && isIt(join(prefix, 'node_modules', '.bin')))
    return `npx --prefix ${quoted(prefix)} sandbox`
  if (typed?.includes('/') && found !== undefined && startsIt(resolve(cwd, typed), found)) return quoted(typed)
  return [process.execPath, found ?? program].map(quoted).join(' ')
}

const NPX = 'npx sandbox'

/** The command that runs this program again. */
export const SELF = programName(process.env, process.cwd(), process.argv[1] ?? fileURLToPath(import.meta.url))

/** Whether a command works in this folder alone. */
export const isOfFolder = (command: string): boolean => command === NPX

/** The verbs that sentences of the daemon name, after the word `sandbox`. */
export const NAMED_VERBS: readonly string[] = ['agent', 'config', 'extension', 'login', 'network', 'serve']
const NAMED = new RegExp(
  `(?<!(?:\\b(?:the|this|a|each|your) |[\\w./-]))sandbox (?=(?:${NAMED_VERBS.join('|')})\\b)`,
  'g',
)

/** A sentence of the daemon, which does not know how a person starts the program, with the command as it is typed. */
export const asTyped = (sentence: string, self = SELF): string => sentence.replace(NAMED, () => `${self} `)
