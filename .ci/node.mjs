import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** For new values: compilers fill it many times a second, and are an eighth slower with that of Node. */
const MEMORY = ['--min-semi-space-size=64', '--max-semi-space-size=64']

/** Runs a program of Node to its end, and throws when it fails, after it has printed why. */
export const node = async (...command) => {
  const [code] = await once(spawn(process.execPath, [...MEMORY, ...command], { stdio: 'inherit' }), 'close')
  if (code !== 0) throw new Error(`${command[0]} failed`)
}
