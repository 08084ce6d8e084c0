import { lstatSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { Env } from '../programs/list-env.js'
import type { Mount } from './spec.js'

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

/** Mounts the toolchains installed in the person's home folder, read-only at the same paths. */
export const toolchainMounts = (): Mount[] =>
  found().flatMap(({ path, toolchain: { parts = ['.'] } }) =>
    parts.flatMap((part): Mount[] => {
      const at = join(path, part)
      return real(at) === at ? [['show', at, at, 'toolchain']] : []
    }),
  )

/** The variables with the toolchains' folders, since HOME differs. */
export const toolchainEnv = (): Env =>
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
