import { parentPort, workerData } from 'node:worker_threads'
import { replayPolicies, type ReplayedPolicies } from './replay-policies.js'

// The thread that starts this one gives it what a replay works on.
parentPort?.postMessage(replayPolicies(workerData as ReplayedPolicies))
