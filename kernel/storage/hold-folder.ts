import { accessSync, chmodSync, constants, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { lockFile } from './process-lock.js'
import { StartError } from '../config/start-error.js'
import { newerFormat } from '../../sdk/node/files/data-format.js'

/**
 * Creates the data folder of a workspace, makes it private and locks it for this process; returns a function that
 * releases it.
 */
export const holdFolder = (data: string, workspace: string): (() => void) => {
  try {
    mkdirSync(data, { recursive: true, mode: 0o700 })
    chmodSync(data, 0o700)
    accessSync(data, constants.R_OK | constants.W_OK | constants.X_OK)
    const held = lockFile(join(data, 'daemon.lock'))
    if ('release' in held) {
      const newer = newerFormat(data, workspace)
      if (newer === undefined) return held.release
      held.release()
      throw new StartError(newer)
    }
    throw new StartError(
      `the data folder ${data} is in use by another daemon (process ${held.holder}): stop it, or choose another `
        + 'with --data',
    )
  } catch (error) {
    if (error instanceof StartError) throw error
    throw new StartError(`the data folder ${data} cannot be written: ${(error as NodeJS.ErrnoException).code}`)
  }
}
