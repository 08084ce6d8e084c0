import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The folder of a program's package: its nearest parent with a `package.json`. */
export const packageFolder = (root: string): string => {
  const around = dirname(root)
  return around === root || existsSync(join(around, 'package.json')) ? around : packageFolder(around)
}

/** A file of the built program that runs by itself, such as `sdk/child.js`: only this is started, also by tests. */
export const programFile = (name: string): string =>
  join((own ??= packageFolder(import.meta.dirname)), 'dist/bundle', name)
let own: string | undefined

/** The version of that package. */
export const packageVersion = (root: string): string =>
  (JSON.parse(readFileSync(join(packageFolder(root), 'package.json'), 'utf8')) as { version: string }).version
