import type { Examples } from '../../sdk/contract.js'
import { logLine } from '../../sdk/log-line.js'
import type { LogsCalls } from './contract.js'

const NAME = 'daemon.log'
const HEAD = { at: 1795384992552, pid: 4711 }
const GONE = { level: 'warn', ...HEAD, group: 'agent', message: 'a repository of a conversation is gone' } as const
const READY = { level: 'info', ...HEAD, message: 'ready' } as const

/** One use of each call. */
export const examples = (): Examples<LogsCalls> => ({
  'GET /logs': {
    input: { kind: 'daemon' },
    output: { files: [{ name: NAME, kind: 'daemon', sizeBytes: 20480, modifiedAt: 1795384992552, live: true }] },
  },
  'GET /logs/file': {
    input: { name: NAME, level: 'warn' },
    output: {
      name: NAME,
      sizeBytes: 20480,
      text: logLine(GONE),
      offset: 18211,
      truncated: false,
    },
  },
  'GET /logs/follow': {
    input: { name: NAME, from: 20480 },
    output: {
      message: { offset: 20480, text: logLine(READY).trimEnd(), level: READY.level, at: READY.at },
      done: { reason: 'removed' },
    },
  },
})
