import { realpathSync } from 'node:fs'
import { delimiter, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packageFolder } from '../node/programs/package.js'
import { quoted } from './text.js'

const real = (path: string): string | undefined => {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}

/** The folders npm puts into PATH for what it runs itself: they are gone when the person types the next command. */
export const OF_NPM = /node_modules[/\\](?:\.bin|.*node-gyp-bin)$/

/**
 * What a person types to run this program again where they are: its name where it is on PATH, `npx sandbox` within its
 * own package or one that has it installed, else the whole command.
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

/** What a person types to run this program again. */
export const SELF = programName(process.env, process.cwd(), process.argv[1] ?? fileURLToPath(import.meta.url))
