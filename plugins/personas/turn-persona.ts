import { accessTo, commonReach, reachOf, type Reach } from '../../sdk/index.js'
import { NO_POWERS } from '../../sdk/node/access/powers.js'
import { placeOf, resolvePath } from '../../sdk/node/files/workspace-paths.js'
import { isClosedName } from '../../sdk/node/files/closed-names.js'
import type { BriefingNote, PersonaCard, ResolvedPowers, TurnPersona } from './contract.js'

/** Every note that a card may leave out. */
export const BRIEFING_NOTES: readonly BriefingNote[] = [
  'map',
  'context',
  'skills',
  'search',
  'dependencies',
  'delegation',
  'cards',
  'browser',
  'capabilities',
]

/** A connection, as cards name it. */
export interface NamedConnection {
  readonly id: string
  readonly kind: string
}

/** The effects of an unknown card on a turn. */
export const noPersona = (id: string): TurnPersona => ({
  id,
  known: false,
  powers: { ...NO_POWERS, connectors: [], devices: [], mcp: [], extensions: [] },
  capabilities: [],
  folders: [],
  notes: [],
  models: [],
})

/** The powers of a card among the connections and extensions that exist. */
export const powersOf = (
  { capabilities, powers = {} }: Pick<PersonaCard, 'capabilities' | 'powers'>,
  connections: readonly NamedConnection[],
  extensions: readonly string[],
): ResolvedPowers => {
  const kinds = new Map(connections.map(({ id, kind }) => [id, kind]))
  const usable = (kind: string, given: readonly string[] | undefined): string[] => {
    const there = connections.filter(each => each.kind === kind).map(({ id }) => id)
    // An account that is not connected yet counts for every kind, so that it does not widen the card now.
    const named = capabilities.filter(id => (kinds.get(id) ?? kind) === kind)
    const wanted = given ?? (named.length > 0 ? named : undefined)
    return wanted ? there.filter(id => wanted.includes(id)) : there
  }
  const { files = 'write', shell = true, code = true, web = true } = powers
  const { browser = true, delegate = true, sandbox = true } = powers
  return {
    ...{ files, shell, code, web, browser, delegate, sandbox },
    connectors: usable('cli', powers.connectors),
    devices: usable('host', powers.devices),
    mcp: usable('mcp', powers.mcp),
    extensions: extensions.filter(id => powers.extensions?.includes(id) ?? true),
  }
}

const LISTED = new Set(['cli', 'host', 'mcp'])

/** The connections that a turn wearing a card may use. */
export const usableConnections = (
  { capabilities }: Pick<PersonaCard, 'capabilities'>,
  { connectors, devices, mcp }: ResolvedPowers,
  connections: readonly NamedConnection[],
): string[] => {
  const others = connections.filter(({ id, kind }) => !LISTED.has(kind) && capabilities.includes(id))
  return [...connectors, ...devices, ...mcp, ...others.map(({ id }) => id)]
}

/** The current real paths of a card. */
export interface CardPlaces {
  readonly startIn?: string
  /** Left out: the whole workspace. */
  readonly folders?: string[]
  /** Paths of the card that are not folders. */
  readonly missing: string[]
}

export const placesOf = async (workspace: string, { workspace: named = {} }: PersonaCard): Promise<CardPlaces> => {
  const { startIn, folders = [] } = named
  const missing: string[] = []
  const placed = async (path: string) => {
    const found = await resolvePath(workspace, path)
    if (found.kind !== 'folder') missing.push(path)
    if (found.kind === 'folder') return found.path
    const place = found.kind === 'missing' ? await placeOf(workspace, path) : undefined
    return place === undefined || isClosedName(place.split('/')) ? undefined : place
  }
  const places = (await Promise.all(folders.map(placed))).filter(place => place !== undefined)
  const begins = startIn === undefined ? undefined : await resolvePath(workspace, startIn)
  if (startIn !== undefined && begins?.kind !== 'folder') missing.push(startIn)
  return {
    ...(begins?.kind === 'folder' && { startIn: begins.path }),
    ...(folders.length > 0 && !places.includes('.') && { folders: [...new Set(places)].sort() }),
    missing: [...new Set(missing)],
  }
}

/** A card as a person sees it who reaches only some folders; undefined: it has none of these. */
export const cardWithin = async (
  workspace: string,
  card: PersonaCard,
  reach: Reach,
): Promise<PersonaCard | undefined> => {
  if (!reach) return card
  const { workspace: _named, context, ...rest } = card
  const { folders, startIn } = await placesOf(workspace, card)
  const common = folders && commonReach(reachOf(folders.map(path => ({ path, access: 'work' }))), reach)
  if (common?.length === 0) return undefined
  const begins = startIn !== undefined && accessTo(reach, startIn) !== undefined
  return {
    ...rest,
    ...((begins || common) && {
      workspace: { ...(begins && { startIn }), ...(common && { folders: common.map(({ path }) => path) }) },
    }),
    ...(context && { context: { repos: context.repos.filter(repo => accessTo(reach, repo) !== undefined) } }),
  }
}
