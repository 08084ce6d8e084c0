import type { Examples } from '../../sdk/contract.js'
import type { LogsCalls } from './contract.js'

const NAME = 'daemon.log'

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
      text: '{"level":40,"msg":"a repository of a conversation is gone"}\n',
      offset: 18211,
      truncated: false,
    },
  },
  'GET /logs/follow': {
    input: { name: NAME, from: 20480 },
    output: {
      message: { offset: 20480, text: '{"level":30,"msg":"ready"}', level: 'info', at: 1795384992552 },
      done: { reason: 'removed' },
    },
  },
})
