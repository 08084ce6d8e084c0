import { join } from 'node:path'
import { inThread } from '../../../sdk/node/concurrency/in-thread.js'
import type { SafetyReplay } from '../contract.js'
import type { ReplayAsked } from './replay.js'

const WORKER = 'plugins/safety/replay/replay-worker.js'

/** Runs a replay in a thread of its own, so that other calls go on meanwhile. */
export const runReplay = (root: string, asked: ReplayAsked, signal: AbortSignal): Promise<SafetyReplay> =>
  inThread(join(root, WORKER), { data: asked, signal })
