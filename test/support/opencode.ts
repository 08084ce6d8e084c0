import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { project } from './browser/page.js'

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
  join(project, '.ci/peers/node_modules/opencode-linux-x64-baseline/bin'),
  ...(process.env.PATH ?? '').split(delimiter),
]
  .map(folder => join(folder, 'opencode'))
  .find(isProgram)

/** The reason for skipping its tests; false: they run. */
export const noOpencode: string | false =
  OPENCODE !== undefined || process.env.CI
    ? false
    : 'opencode is not installed: npm ci --prefix .ci/peers brings it on Linux with an x86-64 processor'
