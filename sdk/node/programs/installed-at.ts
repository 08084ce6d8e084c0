import { realpath } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'

const MODULES = `${sep}node_modules${sep}`

/**
 * The folders that a program at a path needs beside those of the system: where its name lies, and where what it leads
 * to lies, with the packages beside it.
 */
export const installedAt = async (path: string): Promise<string[]> => {
  const real = await realpath(path)
  const at = real.indexOf(MODULES)
  const own = at === -1 ? dirname(real) : join(real.slice(0, at), 'node_modules')
  return [...new Set([dirname(path), own])]
}
