import { inThread } from '../../../sdk/node/concurrency/in-thread.js'
import { programFile } from '../../../sdk/node/programs/package.js'
import type { SafetyReplay } from '../contract.js'
import type { ReplayAsked } from './replay.js'

const WORKER = programFile('plugins/safety/replay/replay-worker.js')

/** Runs a replay in a thread of its own, so that other calls go on meanwhile. */
export const runReplay = (asked: ReplayAsked, signal: AbortSignal): Promise<SafetyReplay> =>
  inThread(WORKER, { data: asked, signal })
