import { basename } from 'node:path'
import type { Env } from '../../../../sdk/node/programs/run.js'

/** A program whose settings the sandbox knows. */
interface KnownProgram {
  /** Variables that make it ask for permission, whatever its own settings allow. */
  readonly env: Env
  /** Matches the model server's error in a line of its standard error while it retries. */
  readonly complaint?: RegExp
}

const KNOWN: { readonly [program: string]: KnownProgram } = {
  // https://opencode.ai/docs/permissions: every permission that is not named asks.
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

/** The variables for a known program; none for others. */
export const settingsOf = (path: string): Env => KNOWN[basename(path)]?.env ?? {}

/** Whether the sandbox can make this program ask for permission. */
export const isKnown = (path: string): boolean => basename(path) in KNOWN

/** The error of the model server in a line of a known program. */
export const complaintIn = (path: string, line: string): string | undefined =>
  KNOWN[basename(path)]?.complaint?.exec(line)?.[1]
