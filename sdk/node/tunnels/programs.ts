import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { ownEnv, run } from '../programs/run.js'

/** What a program said, and how it ended. */
export interface StarterEnd {
  readonly code: number
  readonly output: string
}

/** How to run a program. */
export interface ProgramOptions {
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
  /** Where it runs, `/` unless set, and what it gets beside the usual variables; of a starter. */
  readonly cwd?: string
  readonly env?: { readonly [name: string]: string }
  /** What it reads from its standard input; of a starter. */
  readonly input?: string
  /** Called with each line of its output. */
  readonly line?: (text: string) => void
}

/** Runs a program that leaves nothing behind, and answers its output. */
export const askProgram = async (
  program: string,
  args: readonly string[],
  options: ProgramOptions = {},
): Promise<string> => {
  const { signal, timeoutMs = 3000 } = options
  const result = await run(program, args, { cwd: '/', env: await ownEnv(), timeoutMs, ...(signal && { signal }) })
  if (result.timedOut) throw new Error(`${program} did not answer within ${timeoutMs / 1000} s`)
  if (result.code !== 0) throw new Error(`${program} ended with ${result.code}: ${result.stderr.trim().slice(0, 300)}`)
  return result.stdout.toString()
}

const MOST_OUTPUT = 64 * 1024

/**
 * Runs a program that starts others which go on after it, such as `wg-quick`: when it has ended, they are left alone.
 * An aborted signal ends the whole group.
 */
export const runStarter = async (
  program: string,
  args: readonly string[],
  { signal, timeoutMs = 30_000, line, cwd = '/', env = {}, input: given }: ProgramOptions = {},
): Promise<StarterEnd> => {
  signal?.throwIfAborted()
  const child = spawn(program, args, {
    cwd,
    env: { ...(await ownEnv()), ...env },
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  // It may end before it has read everything.
  child.stdin.on('error', () => undefined)
  child.stdin.end(given)
  const stop = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
  const late = setTimeout(stop, timeoutMs)
  signal?.addEventListener('abort', stop, { once: true })
  let output = ''
  const read = [child.stdout, child.stderr].map(async input => {
    for await (const text of createInterface({ input })) {
      if (output.length < MOST_OUTPUT) output += `${text}\n`
      line?.(text)
    }
  })
  try {
    const code = await new Promise<number>((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', (ended, by) => resolve(ended ?? (by ? 128 : 1)))
    })
    // A program that goes on may hold the outputs open.
    await Promise.race([Promise.all(read), new Promise(resolve => setTimeout(resolve, 500).unref())])
    signal?.throwIfAborted()
    return { code, output }
  } finally {
    clearTimeout(late)
    signal?.removeEventListener('abort', stop)
    child.stdout.destroy()
    child.stderr.destroy()
  }
}

/** Starts a program that outlives the daemon, without a way to speak to it, and answers its process. */
export const startLasting = async (
  program: string,
  args: readonly string[],
  cwd: string,
  env: { readonly [name: string]: string } = {},
): Promise<number> => {
  const child = spawn(program, args, { cwd, env: { ...(await ownEnv()), ...env }, detached: true, stdio: 'ignore' })
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', reject)
  })
  child.unref()
  return child.pid!
}
