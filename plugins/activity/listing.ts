import type { Context, Input } from '../../sdk/index.js'
import { codeOf } from '../../sdk/node/files/paths.js'
import type { ActivityCalls, ActivityEvent } from './contract.js'
import { recordEntryOf } from './record.js'
import { dayNamed, dayOf, segmentLines, type Segments } from './segments.js'

type Asked = Input<ActivityCalls, 'GET /activity'>
type Caller = Context['caller']

const MOST = 500
const USUAL = 100
const PATIENCE = 2000

/** Dependencies of a listing. */
export interface ListingOptions {
  /** Newest first. */
  readonly segments: readonly Pick<Segments, 'names' | 'backwards'>[]
  /** Whether the caller may see a conversation; asked once for each in an answer. */
  readonly seesConversation: (id: string) => Promise<boolean>
  readonly now?: () => number
}

/** The entries asked for that the caller may see, newest first, a page at a time. */
export const listed = async (
  asked: Asked,
  caller: Caller,
  { segments, seesConversation, now = () => performance.now() }: ListingOptions,
): Promise<{ events: ActivityEvent[]; next?: number }> => {
  const limit = Math.min(asked.limit ?? USUAL, MOST)
  const below = Math.min(asked.before ?? Infinity, (asked.to ?? Infinity) + 1)
  const least = asked.from ?? 0
  const until = now() + PATIENCE
  const fits = filterOf(asked)
  const allowed = visibleTo(caller, seesConversation)
  const events: ActivityEvent[] = []
  let last: number | undefined
  for await (const { name, from } of newestFirst(segments)) {
    if (dayNamed(name) > dayOf(below)) continue
    // A write that spans midnight may leave the next day's first entries in the file of the day before.
    if (dayNamed(name) < dayOf(least - DAY)) break
    try {
      for await (const stretch of from.backwards(name)) {
        for (const line of segmentLines(stretch).reverse()) {
          const entry = recordEntryOf(line)
          if (!entry || entry.at >= below) continue
          if (entry.at < least) return { events }
          if (events.length >= limit) return { events, next: events.at(-1)!.at }
          last = entry.at
          if (fits(entry) && (await allowed(entry))) events.push(forCaller(entry, caller))
        }
        if (now() > until && last !== undefined) return { events, next: last }
      }
    } catch (error) {
      // The oldest day may be removed while it is read.
      if (codeOf(error) !== 'ENOENT') throw error
    }
  }
  return { events }
}

async function* newestFirst<S extends Pick<Segments, 'names'>>(
  segments: readonly S[],
): AsyncGenerator<{ name: string; from: S }> {
  for (const from of segments) for (const name of (await from.names()).reverse()) yield { name, from }
}

const DAY = 24 * 60 * 60_000

const filterOf = (asked: Asked): ((entry: ActivityEvent) => boolean) => {
  const words = asked.query?.toLowerCase()
  const { type } = asked
  const ofType =
    type === undefined
      ? () => true
      : type.endsWith('*')
        ? (found: string) => found.startsWith(type.slice(0, -1))
        : (found: string) => found === type
  const same = (['provider', 'direction', 'actor', 'conversationId', 'outcome'] as const).filter(
    key => asked[key] !== undefined,
  )
  return entry =>
    ofType(entry.type)
    && same.every(key => entry[key] === asked[key])
    && (!words || textsOf(entry).some(text => text.toLowerCase().includes(words)))
}

const textsOf = ({
  type,
  actor,
  provider,
  channelId,
  author,
  content,
  endpoint,
  conversationId,
  title,
  error,
  extra,
}: ActivityEvent): string[] =>
  [
    type,
    actor,
    provider,
    channelId,
    author,
    content,
    endpoint,
    conversationId,
    title,
    error,
    extra && JSON.stringify(extra),
  ].filter(text => text !== undefined)

/**
 * Maintainers see everything. Others, and every token, see entries for viewers; people limited to areas only those of
 * conversations inside them.
 */
const visibleTo = (
  { kind, role, areas }: Caller,
  seesConversation: (id: string) => Promise<boolean>,
): ((entry: ActivityEvent) => boolean | Promise<boolean>) => {
  if (kind !== 'token' && (role === 'maintainer' || role === 'owner') && !areas) return () => true
  const known = new Map<string, Promise<boolean>>()
  return ({ audience, conversationId }) => {
    if (audience !== 'viewer') return false
    if (!areas) return true
    if (conversationId === undefined) return false
    const seen = known.get(conversationId) ?? seesConversation(conversationId)
    known.set(conversationId, seen)
    return seen
  }
}

const forCaller = (entry: ActivityEvent, { kind }: Caller): ActivityEvent => {
  if (kind !== 'token') return entry
  const { account, ...rest } = entry
  return rest
}
