import { lstatSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { contains } from '../files/paths.js'

/** A program that installs compilers and interpreters into a person's home folder. */
interface Toolchain {
  /** Its folder below the home folder. */
  readonly folder: string
  /** The variable with the folder, if it is not the default one. */
  readonly variable?: string
  /** The visible parts; default: the whole folder. */
  readonly parts?: readonly string[]
}

/** These folders contain programs and their files, and no credentials; of `.cargo`, for example, only `bin`. */
const TOOLCHAINS: readonly Toolchain[] = [
  { folder: '.nvm', variable: 'NVM_DIR' },
  { folder: '.volta', variable: 'VOLTA_HOME' },
  { folder: '.asdf', variable: 'ASDF_DATA_DIR' },
  { folder: '.local/share/mise', variable: 'MISE_DATA_DIR' },
  { folder: '.local/share/fnm', variable: 'FNM_DIR' },
  { folder: '.cargo', parts: ['bin'] },
  { folder: '.rustup', variable: 'RUSTUP_HOME', parts: ['toolchains', 'settings.toml', 'update-hashes'] },
  { folder: 'go', parts: ['bin'] },
  { folder: 'sdk' },
  { folder: '.pyenv', variable: 'PYENV_ROOT' },
  { folder: '.rbenv', variable: 'RBENV_ROOT' },
  { folder: '.sdkman', variable: 'SDKMAN_DIR', parts: ['candidates', 'bin', 'libexec', 'src'] },
  { folder: '.bun', parts: ['bin'] },
  { folder: '.deno', parts: ['bin'] },
  { folder: '.local/share/pnpm', variable: 'PNPM_HOME' },
  { folder: '.local/bin' },
]

/** A toolchain of the person who runs the daemon, with its real folder. */
interface Found {
  readonly path: string
  readonly toolchain: Toolchain
}

const found = (): Found[] =>
  TOOLCHAINS.flatMap(toolchain => {
    const named = toolchain.variable === undefined ? undefined : process.env[toolchain.variable]
    const path = named !== undefined && isAbsolute(named) ? named : join(homedir(), toolchain.folder)
    return real(path) === path && lstatSync(path).isDirectory() ? [{ path, toolchain }] : []
  })

/** The folders of the toolchains installed in the person's home folder. */
export const toolchainFolders = (): string[] =>
  found().flatMap(({ path, toolchain: { parts = ['.'] } }) =>
    parts.map(part => join(path, part)).filter(at => real(at) === at),
  )

/** Whether a path belongs to a toolchain, which is read-only behind the wall wherever it lies. */
export const isInToolchain = (path: string): boolean => toolchainFolders().some(folder => contains(folder, path))

/** The variables with the toolchains' folders, since HOME differs. */
export const toolchainEnv = (): { readonly [variable: string]: string } =>
  Object.fromEntries(
    found().flatMap(({ path, toolchain: { variable } }) => (variable === undefined ? [] : [[variable, path]])),
  )

const real = (path: string): string | undefined => {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}
