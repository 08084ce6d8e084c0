import { useSignal } from '@preact/signals'
import type { Issue, IssueEvent, IssueException, StackFrame } from '../../../../issues/contract.js'
import { askDaemon } from '../../data/api.js'
import { fragmentOf } from '../../data/route.js'
import { agoOf, countText, momentOf, visibleName, visibleText } from '../../ui/format.js'
import { MoreRow, useFurther } from '../../ui/lists/more.js'
import { Loaded } from '../../ui/page.js'
import { Pairs } from '../../ui/pairs.js'
import { useQuery } from '../../ui/query.js'
import { IssueActions } from './issue-actions.js'
import { TextBlock } from '../../ui/text-block.js'

const Frame = ({ frame }: { frame: StackFrame }) => {
  const { function: name = '?', path, file = '?', line, own, before = [], source, after = [] } = frame
  const place = `${path ?? file}${line === undefined ? '' : `:${line}`}`
  const first = (line ?? 1) - before.length
  return (
    <li class={own ? undefined : 'quiet'}>
      <div class="mono" dir="auto">
        {visibleName(name)} {path === undefined ? visibleName(place) : <a href={fragmentOf('files', path)}>{place}</a>}
      </div>
      {own && source !== undefined && (
        <TextBlock
          class="said-text"
          label={`Source at ${place}`}
          what="the source"
          text={[...before, source, ...after].join('\n')}
        >
          {[...before, source, ...after]
            .map((text, at) => `${first + at === line ? '>' : ' '} ${first + at} ${visibleText(text)}`)
            .join('\n')}
        </TextBlock>
      )}
    </li>
  )
}

const Trace = ({ exception: { type = 'Error', value = '', frames } }: { exception: IssueException }) => {
  const all = useSignal(false)
  const shown = all.value ? frames : frames.filter(({ own }) => own).slice(0, 8)
  return (
    <>
      <h4 dir="auto">
        {visibleName(type)}: {visibleText(value)}
      </h4>
      <ol class="lines">
        {shown.map((frame, at) => (
          <Frame key={at} frame={frame} />
        ))}
      </ol>
      {shown.length < frames.length && (
        <button class="button" type="button" onClick={() => (all.value = true)}>
          Show all {frames.length} frames
        </button>
      )}
    </>
  )
}

const EventView = ({ event }: { event: IssueEvent }) => {
  const { id, at, message, exceptions, breadcrumbs, tags, sdk, extra, feedback } = event
  return (
    <section aria-label={`Event of ${momentOf(at)}`}>
      <h3>{momentOf(at)}</h3>
      {message !== undefined && <TextBlock class="said-text" dir="auto" what="the message" text={message} />}
      {exceptions.map((exception, index) => (
        <Trace key={index} exception={exception} />
      ))}
      <Pairs
        rows={[
          ['Event', id],
          ['Release', event.release],
          ['Environment', event.environment],
          ['Address', event.url],
          ['Transaction', event.transaction],
          ['Runtime', event.runtime],
          ['System', event.os],
          ['Browser', event.browser],
          ['Device', event.device],
          ['SDK', sdk && `${sdk.name} ${sdk.version}`],
          ['A user wrote', feedback],
          ...Object.entries(tags).map(([name, text]) => [visibleName(name), text] as const),
          ['More', extra && JSON.stringify(extra, undefined, 1)],
        ]}
      />
      {breadcrumbs.length > 0 && (
        <details>
          <summary>What it did before ({breadcrumbs.length})</summary>
          <ol class="lines small">
            {breadcrumbs.map(({ at: when, category = '', message: text = '' }, index) => (
              <li key={index} dir="auto">
                {when !== undefined && momentOf(when)} {visibleName(category)} {visibleText(text)}
              </li>
            ))}
          </ol>
        </details>
      )}
    </section>
  )
}

const stateText = ({ state, resolved, ignored }: Issue): string => {
  if (resolved && state === 'resolved')
    return `resolved ${resolved.in === 'now' ? '' : 'in the next release '}by ${visibleName(resolved.by)}`
  return ignored ? `ignored by ${visibleName(ignored.by)}` : state
}

/** One issue with its newest events. */
export const IssuePane = ({ id }: { id: string }) => {
  const query = useQuery(`issue ${id}`, ['issues'], () => askDaemon('GET /issues/{id}', { id }))
  const older = useFurther(id, query.data?.next, async before => {
    const { events, next } = await askDaemon('GET /issues/{id}', { id, limit: 10, before })
    return { rows: events, next }
  })
  return (
    <article class="stack" aria-label="Issue">
      <p>
        <a href={fragmentOf('issues')}>All issues</a>
      </p>
      <Loaded query={query}>
        {({ issue, events }) => (
          <>
            <h2 dir="auto">{visibleName(issue.title)}</h2>
            <IssueActions issue={issue} />
            <Pairs
              rows={[
                ['State', stateText(issue)],
                ['Where', issue.location?.path ?? issue.culprit],
                ['Events', countText(issue.count)],
                ['Users', issue.users === undefined ? undefined : countText(issue.users)],
                ['First', `${agoOf(issue.firstSeen)}${issue.firstRelease ? `, in ${issue.firstRelease}` : ''}`],
                ['Last', `${agoOf(issue.lastSeen)}${issue.lastRelease ? `, in ${issue.lastRelease}` : ''}`],
                ['Environments', issue.environments.join(', ')],
              ]}
            />
            {issue.fix && (
              <p>
                <a href={fragmentOf('c', issue.fix.conversationId)}>The conversation that fixes it</a>
              </p>
            )}
            {[...events, ...older.rows].map(event => (
              <EventView key={event.id} event={event} />
            ))}
            <MoreRow label="Show older events" of={older} />
          </>
        )}
      </Loaded>
    </article>
  )
}
