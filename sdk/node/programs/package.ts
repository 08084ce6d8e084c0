import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The folder of the package a program belongs to: the nearest one around it with a `package.json`. */
export const packageFolder = (root: string): string => {
  const around = dirname(root)
  return around === root || existsSync(join(around, 'package.json')) ? around : packageFolder(around)
}

/** The version of that package. */
export const packageVersion = (root: string): string =>
  (JSON.parse(readFileSync(join(packageFolder(root), 'package.json'), 'utf8')) as { version: string }).version
