import { realpath } from 'node:fs/promises'
import type { Host } from '../../../sdk/index.js'
import { Refusal } from '../../../sdk/index.js'
import { listEnv, needProgram } from '../../../sdk/node/programs/run.js'
import { homeOfWork } from '../../../sdk/node/wall/home.js'
import { runWalled, type WallNetwork } from '../../../sdk/node/wall/wall.js'
import type { GuardResult } from '../contract.js'

/** The longest that a guard runs. */
export const GUARD_MS = 60_000
const DETAIL = 500
const MOST_OUTPUT = 64 * 1024
/** The longest value that the system accepts is 128 KiB with its name. */
const MOST_VARIABLE = 120_000

/** Runs a guard in a shell behind the wall, in the workspace. */
export const runGuard = async (
  { workspace, data, hidden, grants }: Pick<Host['place'], 'workspace' | 'data' | 'hidden' | 'grants'>,
  command: string,
  payload: string | undefined,
  { signal, network, timeoutMs = GUARD_MS }: { signal?: AbortSignal; network?: WallNetwork; timeoutMs?: number } = {},
): Promise<GuardResult> => {
  const began = performance.now()
  const took = () => Math.round(performance.now() - began)
  try {
    const root = await realpath(workspace)
    const { code, stdout, stderr, timedOut } = await runWalled(
      {
        workspace: root,
        data,
        cwd: root,
        home: await homeOfWork(data),
        hide: hidden,
        grants,
        ...(network && { network }),
        env: listEnv({ PWD: root, AUTOMATION_PAYLOAD: variableOf(payload ?? '') }),
      },
      await needProgram('sh'),
      ['-c', command],
      { timeoutMs, maxBytes: MOST_OUTPUT, ...(signal && { signal }) },
    )
    const printed = (stderr.trim() || stdout.toString().trim()).slice(-DETAIL)
    if (timedOut) return { pass: false, detail: late(timeoutMs), durationMs: took() }
    return { pass: code === 0, exitCode: code, ...(printed && { detail: printed }), durationMs: took() }
  } catch (error) {
    if (signal?.aborted || !(error instanceof Refusal)) throw error
    return { pass: false, detail: error.message.slice(-DETAIL), durationMs: took() }
  }
}

const late = (timeoutMs: number): string => `the guard did not end within ${timeoutMs / 1000} s and was stopped`

/** Cut where the system would refuse it; without characters that no variable can hold. */
const variableOf = (payload: string): string => {
  const bytes = Buffer.from(payload.replaceAll('\0', ''))
  return bytes.length <= MOST_VARIABLE ? bytes.toString() : new TextDecoder().decode(bytes.subarray(0, MOST_VARIABLE))
}

/** Why a guard did not pass. */
export const guardDetail = ({ exitCode, detail }: GuardResult): string =>
  exitCode === undefined
    ? (detail ?? 'the guard did not run')
    : `the guard exited with ${exitCode}${detail === undefined ? '' : `: ${detail}`}`
