import { realpathSync } from 'node:fs'
import { delimiter, dirname, join, relative } from 'node:path'
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

/**
 * The command that runs this program again from a folder: `sandbox` if it is on PATH, `npx sandbox` in its own package
 * or one that has it installed, else the full command.
 */
export const programName = (
  { PATH = '' }: { readonly PATH?: string | undefined },
  cwd: string,
  program: string,
): string => {
  const found = real(program)
  const isIt = (folder: string) => found !== undefined && real(join(folder, 'sandbox')) === found
  if (PATH.split(delimiter).some(folder => folder !== '' && !OF_NPM.test(folder) && isIt(folder))) return 'sandbox'
  if (found !== undefined && !relative(packageFolder(dirname(found)), cwd).startsWith('..')) return 'npx sandbox'
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (isIt(join(folder, 'node_modules', '.bin'))) return 'npx sandbox'
    if (folder === dirname(folder)) return [process.execPath, found ?? program].map(quoted).join(' ')
  }
}

/** The command that runs this program again. */
export const SELF = programName(process.env, process.cwd(), process.argv[1] ?? fileURLToPath(import.meta.url))
