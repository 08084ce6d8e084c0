import { basename } from 'node:path'
import type { Env } from '../../../../sdk/node/programs/run.js'
import type { PermissionMode } from '../../turn/frames/frames.js'

/** The names that a program has for permission modes. */
export type ModeNames = { readonly [mode in PermissionMode]?: string }

/** A program whose settings the sandbox knows. */
interface KnownProgram {
  /** Variables that make it work behind the wall as it should. */
  readonly env?: Env
  /** These variables make it ask for permission, whatever its own settings allow. */
  readonly asks?: true
  /** Its modes, where it has other names for them than programs have in common. */
  readonly modes?: ModeNames
  /** It takes an answer that a file is missing for a failure, so it reads and writes files itself. */
  readonly ownFiles?: true
  /** It waits longer for a tool server that it starts itself. */
  readonly startsTools?: true
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
    asks: true,
    complaint: /message="stream error".* small=false .*error\.error="([^"]+)"/,
  },
  // Its own walls cannot be built behind that of the sandbox: commands run without one, or after a permission.
  'codex-acp': {
    modes: {
      plan: 'read-only',
      default: 'read-only',
      acceptEdits: 'read-only',
      bypassPermissions: 'agent-full-access',
    },
  },
  // In a folder that it does not trust it uses no tool server, the sandbox's neither.
  gemini: { env: { GEMINI_CLI_TRUST_WORKSPACE: 'true' }, ownFiles: true },
  // Its first request would go without the tools of servers that have not answered yet; those that are reached over
  // HTTP have 5 s for that.
  qwen: { env: { QWEN_CODE_LEGACY_MCP_BLOCKING: '1' }, startsTools: true },
}

/** The variables for a known program; none for others. */
export const settingsOf = (path: string): Env => KNOWN[basename(path)]?.env ?? {}

/** Whether the sandbox can make this program ask for permission. */
export const isKnown = (path: string): boolean => KNOWN[basename(path)]?.asks ?? false

/** The names of permission modes in a known program; none for others. */
export const modeNamesOf = (path: string): ModeNames => KNOWN[basename(path)]?.modes ?? {}

/** Whether this program reads and writes files itself, without asking the sandbox. */
export const hasOwnFiles = (path: string): boolean => KNOWN[basename(path)]?.ownFiles ?? false

/** Whether this program should start the sandbox's tool server, even if it reaches one over HTTP. */
export const startsTools = (path: string): boolean => KNOWN[basename(path)]?.startsTools ?? false

/** The error of the model server in a line of a known program. */
export const complaintIn = (path: string, line: string): string | undefined =>
  KNOWN[basename(path)]?.complaint?.exec(line)?.[1]
