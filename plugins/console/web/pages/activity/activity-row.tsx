import type { ActivityEvent } from '../../../../activity/contract.js'
import { typeWords } from '../../data/record-pages.js'
import { fragmentOf } from '../../data/route.js'
import { momentOf, visibleName, visibleText } from '../../ui/format.js'
import { Pairs } from '../../ui/pairs.js'

/** Shown in the row itself, or without a meaning for a person. */
const APART = new Set(['id', 'at', 'type', 'content', 'actor', 'audience', 'conversationId', 'title', 'outcome'])

const factText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

const factsOf = (entry: ActivityEvent): readonly (readonly [string, string])[] =>
  Object.entries(entry).flatMap(([key, value]): (readonly [string, string])[] => {
    if (key === 'extra' && value)
      return Object.entries(value as object).map(([name, one]) => [name, factText(one)] as const)
    return APART.has(key) || value === undefined ? [] : [[key, factText(value)]]
  })

/** An entry as one line. */
const lineOf = (entry: ActivityEvent): string =>
  entry.error
  ?? entry.content
  ?? entry.endpoint
  ?? entry.title
  ?? Object.entries(entry.extra ?? {})
    .map(([name, value]) => `${name}: ${factText(value)}`)
    .join(', ')

/** One entry of the record; it opens to all that is known of it. */
export const ActivityRow = ({ entry }: { entry: ActivityEvent }) => (
  <details class="entry">
    <summary>
      <span class="entry-what">
        <strong>{typeWords(entry.type)}</strong>
        {entry.outcome === 'error' && <span class="tag bad">Failed</span>}
        {entry.direction === 'out' && <span class="tag">Left the sandbox</span>}
        {entry.direction === 'in' && <span class="tag">Came in</span>}
        <span class="entry-text quiet" dir="auto">
          {visibleName(lineOf(entry))}
        </span>
      </span>
      <span class="entry-who quiet small">
        <span dir="auto">{visibleName(entry.actor ?? '')}</span>
        <time dateTime={new Date(entry.at).toISOString()}>{momentOf(entry.at)}</time>
      </span>
    </summary>
    <div class="entry-body stack">
      {entry.content && (
        <p class="plain-text" dir="auto">
          {visibleText(entry.content)}
        </p>
      )}
      {entry.conversationId && (
        <p>
          <a href={fragmentOf('c', entry.conversationId)}>
            Open the conversation {visibleName(entry.title ?? entry.conversationId)}
          </a>
        </p>
      )}
      <Pairs rows={factsOf(entry)} mono />
    </div>
  </details>
)
