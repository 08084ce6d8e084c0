import { parentPort, workerData } from 'node:worker_threads'
import { replay, type ReplayAsked } from './replay.js'

// The thread that starts this one gives it what a replay works on.
parentPort?.postMessage(replay(workerData as ReplayAsked))
