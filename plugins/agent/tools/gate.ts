import type { CardDraft, GatedCall } from '../providers/adapter.js'
import type { PermissionMode, ToolCategory } from '../turn/frames/frames.js'
import { withheldBy, type TurnPowers } from '../../../sdk/node/access/powers.js'
import { isReadOnly } from './read-only.js'

/** The facts about the turn that the gate decides by. */
export interface GateState {
  readonly mode: PermissionMode
  /** The only tools the turn may use; left out: all. */
  readonly allowedTools?: readonly string[]
  /** The powers of the turn's persona; left out: all. */
  readonly powers?: TurnPowers
  /** Names of the tools that a person always allows in this conversation. */
  readonly remembered: ReadonlySet<string>
  /** Whether a card could be answered. */
  readonly attended: boolean
}

/** A card that asks for permission, before it has an id. */
export type PermissionDraft = CardDraft & { readonly kind: 'permission' }

/** Whether a call runs, asks a person, or is refused. */
export type Verdict =
  | { readonly verdict: 'go' }
  | { readonly verdict: 'ask'; readonly card: PermissionDraft }
  | { readonly verdict: 'refuse'; readonly reason: string }

type Rule = 'go' | 'ask' | 'refuse' | 'only reading'
type Kind = 'looks' | 'changes' | 'executes' | 'reaches out' | 'spends'

const KINDS: { readonly [category in ToolCategory]: Kind } = {
  read: 'looks',
  search: 'looks',
  think: 'looks',
  edit: 'changes',
  delete: 'changes',
  move: 'changes',
  execute: 'executes',
  fetch: 'reaches out',
  other: 'reaches out',
}

/** The gate checks each call of a subagent, and the others ask a person themselves: none needs a permission. */
const HARMLESS = new Set(['Delegate', 'Join', 'Need', 'Withdraw', 'Propose', 'Handover', 'Connect'])

const RULES: { readonly [mode in PermissionMode]: { readonly [kind in Kind]: Rule } } = {
  default: { looks: 'go', changes: 'ask', executes: 'ask', 'reaches out': 'ask', spends: 'ask' },
  acceptEdits: { looks: 'go', changes: 'go', executes: 'ask', 'reaches out': 'ask', spends: 'ask' },
  plan: { looks: 'go', changes: 'refuse', executes: 'only reading', 'reaches out': 'go', spends: 'refuse' },
  bypassPermissions: { looks: 'go', changes: 'go', executes: 'go', 'reaches out': 'go', spends: 'go' },
}

const GO: Verdict = { verdict: 'go' }
/** A person who agrees has seen the whole call: a longer one is refused. */
const MOST_SHOWN = 256 * 1024

/** Decides about a call by the tools the turn may use, its persona's powers, its mode, then remembered permissions. */
export const decide = (call: GatedCall, { mode, allowedTools, powers, remembered, attended }: GateState): Verdict => {
  const { name } = call
  if (allowedTools && !allowedTools.includes(name)) {
    const rest = allowedTools.length > 0 ? `it may use ${allowedTools.slice(0, 20).join(', ')}` : 'it may use none'
    return { verdict: 'refuse', reason: `this turn may not use ${name}: ${rest}` }
  }
  const taken = powers && withheldBy(powers, name, call.category)
  if (taken) {
    const reason = `the persona of this turn may not use ${name}: its card says so (${taken})`
    return { verdict: 'refuse', reason }
  }
  const kind = HARMLESS.has(name) ? 'looks' : name === 'Pay' ? 'spends' : KINDS[call.category]
  const rule = RULES[mode][kind]
  if (rule === 'go') return GO
  if (rule !== 'ask') {
    // What is written to a program that runs means what that program makes of it.
    const command = name === 'Process' ? undefined : call.command
    if (rule === 'only reading' && command !== undefined && isReadOnly(command)) return GO
    const what = rule === 'refuse' ? 'nothing may be changed' : 'only commands that are known to be read-only run'
    return { verdict: 'refuse', reason: `this turn is in plan mode: ${what} until a plan is approved` }
  }
  if (remembered.has(name)) return GO
  const reason = `in mode ${mode} a person must agree to ${name}`
  if (!attended) return { verdict: 'refuse', reason: `${reason}, and nobody watches this turn` }
  return askAbout(call, {
    reason,
    alwaysLabel: `Always allow ${name} in this conversation`,
    other: `${name}${call.path === undefined ? '' : ` ${call.path}`}`,
  })
}

/** Asks a person about a call, all of which the card shows; `other` is its title where it runs and fetches nothing. */
export const askAbout = (
  { name, command, code, path, url, title }: GatedCall,
  { reason, alwaysLabel, other }: { readonly reason: string; readonly alwaysLabel?: string; readonly other: string },
): Exclude<Verdict, { verdict: 'go' }> => {
  const shown = command ?? code ?? url ?? path ?? title
  if (shown !== undefined && shown.length > MOST_SHOWN) {
    const found = `expected at most ${MOST_SHOWN} characters, found ${shown.length}`
    return { verdict: 'refuse', reason: `${reason}, and this call is too long to be shown: ${found}` }
  }
  const card: PermissionDraft = {
    kind: 'permission',
    toolName: name,
    title:
      command !== undefined
        ? 'Run a command'
        : code !== undefined
          ? 'Run code'
          : url !== undefined
            ? 'Fetch a page'
            : other,
    ...(shown !== undefined && { description: shown }),
    reason,
    ...(path !== undefined && { path }),
    ...(alwaysLabel !== undefined && { alwaysLabel }),
  }
  return { verdict: 'ask', card }
}
