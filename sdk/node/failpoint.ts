import { kill, pid } from 'node:process'

/** Which point is to end this process, and at the how manieth passing: read once, and handed to no child. */
const [armed, passings = '1'] = (process.env['SANDBOX_FAILPOINT'] ?? '').split(':')
delete process.env['SANDBOX_FAILPOINT']
let left = Number(passings)

/**
 * Ends this process as `kill -9` does where the environment variable SANDBOX_FAILPOINT names this point, after doing
 * `last`.
 */
export const failpoint = (point: string, last?: () => void): void => {
  if (point !== armed || --left !== 0) return
  last?.()
  kill(pid, 'SIGKILL')
}
