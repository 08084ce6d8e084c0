/** What a turn may do, as a persona's card limits it: every choice made. */
export interface TurnPowers {
  files: 'none' | 'read' | 'write'
  shell: boolean
  code: boolean
  web: boolean
  delegate: boolean
}

/** The powers of a card that does not exist: a turn may only answer. */
export const NO_POWERS = {
  files: 'none',
  shell: false,
  code: false,
  web: false,
  browser: false,
  delegate: false,
  sandbox: false,
} as const

/** What a tool takes. */
export type PowerNeeded = 'files.read' | 'files.write' | 'shell' | 'code' | 'web' | 'delegate' | 'all' | 'none'

/** The kinds of calls that programs make by themselves, by the category they show. */
const BY_CATEGORY: { readonly [category: string]: PowerNeeded } = {
  read: 'files.read',
  search: 'files.read',
  edit: 'files.write',
  delete: 'files.write',
  move: 'files.write',
  execute: 'shell',
  fetch: 'web',
  think: 'none',
}

/** What each tool of the sandbox takes. */
const BY_NAME: { readonly [tool: string]: PowerNeeded } = {
  Read: 'files.read',
  List: 'files.read',
  Search: 'files.read',
  Write: 'files.write',
  Append: 'files.write',
  Edit: 'files.write',
  Delete: 'files.write',
  Move: 'files.write',
  Shell: 'shell',
  Process: 'shell',
  Code: 'code',
  Fetch: 'web',
  Browser: 'web',
  Delegate: 'delegate',
  Join: 'delegate',
  Todo: 'none',
  Ask: 'none',
  Plan: 'none',
  Skill: 'none',
  Need: 'none',
  Withdraw: 'none',
  Handover: 'none',
  Propose: 'none',
  Connect: 'none',
  Pay: 'web',
}

/** Tools that put up a card; in an unattended turn the agent raises a need instead. */
export const ASKING_TOOLS: ReadonlySet<string> = new Set(['Ask', 'Plan', 'Handover', 'Connect'])

/** The tools of the sandbox that powers speak of. */
export const POWERED_TOOLS: readonly string[] = Object.keys(BY_NAME)

const withheld = (powers: TurnPowers, need: PowerNeeded): string | undefined => {
  const { files, shell, code, web, delegate } = powers
  switch (need) {
    case 'none':
      return undefined
    case 'files.read':
      return files === 'none' ? 'powers.files' : undefined
    case 'files.write':
      return files === 'write' ? undefined : 'powers.files'
    case 'all':
      if (files !== 'write') return 'powers.files'
      return Object.entries({ shell, code, web, delegate })
        .filter(([, has]) => !has)
        .map(([name]) => `powers.${name}`)[0]
    default:
      return powers[need] ? undefined : `powers.${need}`
  }
}

/**
 * The field of a card that takes a call away; undefined: it may be made.
 *
 * A call that a program names itself is judged by its category, and where that says nothing it takes every power.
 */
export const withheldBy = (powers: TurnPowers, name: string, category = 'other'): string | undefined =>
  withheld(powers, Object.hasOwn(BY_NAME, name) ? BY_NAME[name]! : (BY_CATEGORY[category] ?? 'all'))
