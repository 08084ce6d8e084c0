import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import { SELF } from '../terminal/own-name.js'
import type { Terminal } from '../verb.js'
import { programFile } from '../../node/programs/package.js'

/** Starts the daemon of this installation; it stops when this process ends, even if that was killed. */
export const startDaemonProcess = (
  { env, cwd }: Terminal,
  args: readonly string[],
  stdio: 'inherit' | readonly ['ignore', 'pipe', 'pipe'],
): ChildProcess =>
  spawn(process.execPath, [programFile('kernel/main.js'), ...args], {
    cwd,
    env: { ...env, SANDBOX_PARENT: String(process.pid), SANDBOX_COMMAND: SELF },
    stdio: stdio === 'inherit' ? stdio : [...stdio],
  })

/** Waits until a daemon ends and returns its exit code; sends it SIGTERM when this program is stopped. */
export const ended = (child: ChildProcess, { signal }: Pick<Terminal, 'signal'>): Promise<number> =>
  new Promise((resolve, reject) => {
    const stop = () => void child.kill('SIGTERM')
    const kill = () => void child.kill('SIGKILL')
    const finish = (code: number) => {
      signal.removeEventListener('abort', stop)
      process.off('exit', kill)
      resolve(code)
    }
    // On a second signal this program exits at once and kills the daemon, which recovers at its next start.
    process.on('exit', kill)
    child.once('error', reject)
    if (child.exitCode !== null || child.signalCode !== null) return finish(codeOf(child))
    child.once('exit', () => finish(codeOf(child)))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
  })

const codeOf = ({ exitCode, signalCode }: ChildProcess): number =>
  exitCode ?? 128 + (signalCode ? constants.signals[signalCode] : 0)
