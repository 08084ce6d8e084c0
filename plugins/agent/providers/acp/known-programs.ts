import { basename } from 'node:path'
import type { Env } from '../../../../sdk/node/programs/run.js'

/** A program whose ways are known. */
interface KnownProgram {
  /** What makes it ask before it does something, in place of what its own settings allow. */
  readonly env: Env
  /** The words about its model server in a line that it writes to standard error while it tries again and again. */
  readonly complaint?: RegExp
}

const KNOWN: { readonly [program: string]: KnownProgram } = {
  // https://opencode.ai/docs/permissions: whatever is not named keeps asking.
  opencode: {
    env: {
      OPENCODE_PERMISSION: JSON.stringify({ '*': 'ask', read: 'allow', list: 'allow', glob: 'allow', grep: 'allow' }),
      OPENCODE_DISABLE_AUTOUPDATE: 'true',
      OPENCODE_DISABLE_TERMINAL_TITLE: 'true',
      OPENCODE_PRINT_LOGS: '1',
      OPENCODE_LOG_LEVEL: 'ERROR',
    },
    complaint: /message="stream error".* small=false .*error\.error="([^"]+)"/,
  },
}

/** The settings a program is started with, when it is one that the sandbox knows. */
export const settingsOf = (path: string): Env => KNOWN[basename(path)]?.env ?? {}

/** Whether the sandbox can start this program so that it asks. */
export const isKnown = (path: string): boolean => basename(path) in KNOWN

/** What a line of a known program complains about. */
export const complaintIn = (path: string, line: string): string | undefined =>
  KNOWN[basename(path)]?.complaint?.exec(line)?.[1]
