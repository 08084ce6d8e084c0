import { mkdirSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

/** Where daemons keep their data unless told otherwise: one folder a workspace below it. No turn sees it. */
export const stateFolder = (env: NodeJS.ProcessEnv): string => {
  const base = env.XDG_STATE_HOME
  return join(base && isAbsolute(base) ? base : join(homedir(), '.local', 'state'), 'sandbox')
}

/**
 * Keeps the compiled program for the next start, which is quicker by it.
 *
 * It lies where no turn can write: whoever does decides what the next daemon runs. Node's own choice, a folder of
 * everybody's temporary files, is within their reach.
 */
export const keepCompiled = (env: NodeJS.ProcessEnv): void => {
  const folder = stateFolder(env)
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    enableCompileCache(join(folder, 'compiled'))
  } catch {
    // A folder that cannot be made costs a slower start and nothing else.
  }
}
