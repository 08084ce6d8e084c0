import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import { join } from 'node:path'
import type { Terminal } from './verb.js'

/** Starts the daemon program of this installation; it stops when this program is gone, however it went. */
export const startDaemonProcess = (
  { root, env, cwd }: Terminal,
  args: readonly string[],
  stdio: 'inherit' | readonly ['ignore', 'pipe', 'pipe'],
): ChildProcess =>
  spawn(process.execPath, [join(root, 'kernel', 'main.js'), ...args], {
    cwd,
    env: { ...env, SANDBOX_PARENT: String(process.pid) },
    stdio: stdio === 'inherit' ? stdio : [...stdio],
  })

/** Waits for a daemon's end, asks it to stop when this program is stopped, and returns its exit code. */
export const ended = (child: ChildProcess, { signal }: Pick<Terminal, 'signal'>): Promise<number> =>
  new Promise((resolve, reject) => {
    const stop = () => void child.kill('SIGTERM')
    const kill = () => void child.kill('SIGKILL')
    const over = (code: number) => {
      signal.removeEventListener('abort', stop)
      process.off('exit', kill)
      resolve(code)
    }
    // Told a second time to stop, this program leaves at once and takes the daemon with it, which survives that.
    process.on('exit', kill)
    child.once('error', reject)
    if (child.exitCode !== null || child.signalCode !== null) return over(codeOf(child))
    child.once('exit', () => over(codeOf(child)))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
  })

const codeOf = ({ exitCode, signalCode }: ChildProcess): number =>
  exitCode ?? 128 + (signalCode ? constants.signals[signalCode] : 0)
