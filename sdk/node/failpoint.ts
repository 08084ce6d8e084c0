import { kill, pid } from 'node:process'

/** The armed failpoint and the number of passes until it fires; read once and not inherited by children. */
const [armed, passings = '1'] = (process.env['SANDBOX_FAILPOINT'] ?? '').split(':')
delete process.env['SANDBOX_FAILPOINT']
let left = Number(passings)

/**
 * Kills this process with SIGKILL if the environment variable SANDBOX_FAILPOINT names this point; calls `last` before.
 */
export const failpoint = (point: string, last?: () => void): void => {
  if (point !== armed || --left !== 0) return
  last?.()
  kill(pid, 'SIGKILL')
}
