import { posix } from 'node:path'
import { Refusal, refuse } from '../../sdk/index.js'
import { isClosedName } from '../../sdk/node/files/closed-names.js'
import { segmentsOf } from '../../sdk/node/files/paths.js'
import type { PersonaCard } from './contract.js'

const invalid = (path: string, expected: string, found: string): never =>
  refuse('invalid', `${path}: expected ${expected}, found ${found}`, { errors: [{ path, expected, value: found }] })

/** A folder of a card in its normal form, `.` for the root; refuses one outside the workspace. */
const plainFolder = (field: string, given: string): string => {
  const expected = 'a folder inside the workspace'
  const shown = JSON.stringify(given.slice(0, 80))
  if (given.startsWith('/') || given.includes('\\')) invalid(field, expected, shown)
  const path = posix.normalize(given).replace(/\/$/, '') || '.'
  if (path === '.') return path
  if (path === '..' || path.startsWith('../')) invalid(field, expected, shown)
  try {
    if (isClosedName(segmentsOf(path))) invalid(field, 'a folder that belongs neither to git nor to the sandbox', shown)
  } catch (error) {
    if (!(error instanceof Refusal) || error.detail.errors?.[0]?.path === field) throw error
    invalid(field, expected, shown)
  }
  return path
}

const folded = <T>(list: readonly T[]): T[] => [...new Set(list)]

/** A card in its stored form: normalised paths, no duplicates in lists. */
export const storedCard = (card: PersonaCard): PersonaCard => {
  const { capabilities, powers, workspace, context, briefing, label, ...rest } = card
  const { startIn, folders } = workspace ?? {}
  const { connectors, devices, mcp, extensions, ...switches } = powers ?? {}
  const lists = Object.entries({ connectors, devices, mcp, extensions }).flatMap(([name, list]) =>
    list ? [[name, folded(list)]] : [],
  )
  return {
    ...rest,
    ...(label?.trim() && { label: label.trim() }),
    capabilities: folded(capabilities),
    ...(powers && { powers: { ...switches, ...Object.fromEntries(lists) } }),
    ...(workspace && {
      workspace: {
        ...(startIn && { startIn: plainFolder('workspace.startIn', startIn) }),
        ...(folders && {
          folders: folded(folders.map((folder, nth) => plainFolder(`workspace.folders[${nth}]`, folder))),
        }),
      },
    }),
    ...(context && {
      context: { repos: folded(context.repos.map((repo, nth) => plainFolder(`context.repos[${nth}]`, repo))) },
    }),
    ...(briefing && { briefing: { omit: folded(briefing.omit) } }),
  }
}

const STRANGERS = 'front-desk'
const LISTS = ['mcp', 'connectors', 'devices', 'extensions'] as const
const SWITCHES = ['shell', 'code', 'delegate', 'sandbox'] as const

/** Refuses a card for strangers with more powers than answering questions needs. */
export const assertNarrow = ({ id, powers = {} }: PersonaCard): void => {
  if (id !== STRANGERS) return
  const wrong = [
    ...((powers.files ?? 'write') === 'write' ? ['files none or read'] : []),
    ...SWITCHES.filter(name => powers[name] !== false).map(name => `${name} false`),
    ...LISTS.filter(name => powers[name] === undefined).map(name => `a list for ${name}`),
  ]
  if (wrong.length > 0) refuse('conflict', `${STRANGERS} answers strangers: its powers need ${wrong.join(', ')}`)
}
