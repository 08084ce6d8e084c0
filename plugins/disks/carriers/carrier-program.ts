import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { readPlain } from '../../../sdk/node/files/files.js'
import { needProgram, ownEnv, signalGroup, type Env } from '../../../sdk/node/programs/run.js'
import type { StartedCarrier } from './carrier.js'
import { ignored } from '../../../sdk/index.js'

const OUTPUT = 'output.log'
/** The most that a carrier's output may take on the disk. */
const MOST_OUTPUT = 1024 * 1024
const GRACE_MS = 2_000

/** How a program is started that mounts. */
export interface CarrierProgram {
  readonly program: string
  readonly args: readonly string[]
  readonly env?: Env
  /** What it reads first. */
  readonly input?: string
  /** Where its output is kept. */
  readonly folder: string
}

/** A program that was started: it serves the mount, or puts that into the background and ends. */
export interface StartedProgram extends StartedCarrier {
  /** Its exit code. */
  readonly ended: Promise<number>
}

/**
 * Starts a program that mounts, in a process group of its own. It outlives the daemon, because it writes into a file
 * and nothing waits for it; what it puts into the background is not ended with it.
 */
export const startCarrier = async (given: CarrierProgram): Promise<StartedProgram> => {
  const { args, env, input, folder } = given
  const program = await needProgram(given.program)
  const path = join(folder, OUTPUT)
  await using output = await open(path, 'a', 0o600)
  const child = spawn(program, args, {
    cwd: '/',
    env: { ...(await ownEnv(env)) },
    detached: true,
    stdio: [input === undefined ? 'ignore' : 'pipe', output.fd, output.fd],
  })
  const ended = once(child, 'exit').then(([code]) => Number(code ?? 1))
  ended.catch(ignored('the caller that awaits it gets the failure'))
  await once(child, 'spawn')
  child.stdin?.on('error', ignored('a program may end without reading its input; ended says so'))
  child.stdin?.end(input)
  child.unref()
  return {
    ended,
    output: async () => readPlain(path, 2 * MOST_OUTPUT) ?? '',
    end: async () => {
      if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
      signalGroup(child.pid, 'SIGTERM')
      const killer = setTimeout(() => signalGroup(child.pid!, 'SIGKILL'), GRACE_MS)
      await ended
      clearTimeout(killer)
    },
  }
}

/** Empties the output of a carrier that has written too much. */
export const limitOutput = async (folder: string): Promise<void> => {
  const path = join(folder, OUTPUT)
  const handle = await open(path, 'r').catch(() => undefined)
  if (!handle) return
  const { size } = await handle.stat().finally(() => handle.close())
  if (size > MOST_OUTPUT) await truncate(path)
}
