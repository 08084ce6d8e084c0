import { realpath, stat } from 'node:fs/promises'
import { isAbsolute, relative, resolve, sep } from 'node:path'
import type { Connection } from '../daemon/connection.js'
import { plain } from '../terminal/text.js'
import { type Flag, misused, type Terminal } from '../verb.js'

const MOST = 20

/** The option that attaches files to a message. */
export const ATTACH: { readonly [name: string]: Flag } = {
  attach: { value: 'FILE', multiple: true, help: 'a file of the workspace that goes with the words; at most 20' },
}

/**
 * Converts file arguments to paths in the workspace. For a daemon on another machine they must already be such paths.
 */
export const attachmentsOf = async (
  { cwd }: Pick<Terminal, 'cwd'>,
  { daemon }: Pick<Connection, 'daemon'>,
  files: readonly string[],
): Promise<string[]> => {
  if (files.length > MOST) misused(`--attach: expected at most ${MOST} files, found ${files.length}`)
  if (!daemon) return [...files]
  return Promise.all(
    files.map(async file => {
      const path = resolve(cwd, file)
      const found = await stat(path).catch((error: NodeJS.ErrnoException) =>
        misused(`--attach: ${plain(file)} cannot be read (${error.code})`),
      )
      if (!found.isFile()) misused(`--attach: expected a file, found a folder or a device at ${plain(file)}`)
      const inside = relative(daemon.workspace, await realpath(path))
      if (inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside)) {
        misused(
          `--attach: expected a file inside the workspace ${plain(daemon.workspace)}, found ${plain(file)}; copy `
            + 'it there first',
        )
      }
      return inside.split(sep).join('/')
    }),
  )
}
