import { basename } from 'node:path'
import type { Env } from '../../../../sdk/node/programs/run.js'

/** What makes a known program ask before it does something, in place of what its own settings allow. */
interface KnownProgram {
  readonly env: Env
}

const KNOWN: { readonly [program: string]: KnownProgram } = {
  // https://opencode.ai/docs/permissions: whatever is not named keeps asking.
  opencode: {
    env: {
      OPENCODE_PERMISSION: JSON.stringify({ '*': 'ask', read: 'allow', list: 'allow', glob: 'allow', grep: 'allow' }),
      OPENCODE_DISABLE_AUTOUPDATE: 'true',
      OPENCODE_DISABLE_TERMINAL_TITLE: 'true',
    },
  },
}

/** The settings a program is started with, when it is one that the sandbox knows. */
export const settingsOf = (path: string): Env => KNOWN[basename(path)]?.env ?? {}

/** Whether the sandbox can start this program so that it asks. */
export const isKnown = (path: string): boolean => basename(path) in KNOWN
