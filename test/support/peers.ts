import { accessSync, chmodSync, constants, cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { project } from './browser/page.js'

/** A file in the packages of others that tests run against; they are installed apart from the daemon's own. */
export const peerPath = (file: string): string => join(project, '.ci/peers/node_modules', file)

const skipping = (what: string, isThere: boolean): string | false =>
  isThere || process.env.CI
    ? false
    : `${what} is not installed: npm ci --prefix .ci/peers brings it on Linux with an x86-64 processor`

/** The reason for skipping the tests that need this file of `peerPath`; false: they run. */
export const noPeer = (file: string): string | false => skipping(file, existsSync(peerPath(file)))

/** Installs a program of `peerPath` into a home, where a wall shows it; `script` begins with its package. */
export const installPeer = (home: string, name: string, script: string): void => {
  const [bin, lib] = [join(home, '.local/bin'), join(home, '.local/lib')]
  mkdirSync(bin, { recursive: true })
  const folder = script.split('/')[0]!
  cpSync(peerPath(folder), join(lib, folder), { recursive: true })
  writeFileSync(join(bin, name), `#!/bin/sh\nexec ${process.execPath} ${join(lib, script)} "$@"\n`)
  chmodSync(join(bin, name), 0o755)
}

const isProgram = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The real agent program that tests run: installed by `.ci/run` or by the user. */
export const OPENCODE: string | undefined = [
  peerPath('opencode-linux-x64-baseline/bin'),
  ...(process.env.PATH ?? '').split(delimiter),
]
  .map(folder => join(folder, 'opencode'))
  .find(isProgram)

/** The reason for skipping its tests; false: they run. */
export const noOpencode: string | false = skipping('opencode', OPENCODE !== undefined)
