import type { SafetyOutcome, SafetyVerdict } from '../../../../safety/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { agoOf, momentOf, visibleName, visibleText } from '../../ui/format.js'
import { FaultLine, Item, Loaded } from '../../ui/page.js'
import { MoreRow, usePages } from '../../ui/lists/more.js'
import { VERDICTS } from './words.js'

const OUTCOMES: { readonly [outcome in SafetyOutcome]: string } = {
  ran: 'it ran',
  refused: 'it was refused',
  approved: 'a person agreed',
  declined: 'a person declined',
  pending: 'it waits for an answer',
  shadow: 'the judge only looked',
}

const VerdictRow = ({ verdict: entry }: { verdict: SafetyVerdict }) => {
  const { id, at, subject, verdict, reason, classes, conversationId, outcome, answeredBy, review } = entry
  const action = useAction()
  const judge = (correct: boolean) => async () => {
    await askDaemon('POST /safety/verdicts/{id}/review', { id, correct })
    refetch(new Set(['safety']))
  }
  return (
    <Item
      title={<code>{visibleName(subject.text.slice(0, 200))}</code>}
      state={VERDICTS[verdict]}
      detail={
        <div class="stack">
          <div dir="auto">
            {visibleText(reason)}
            {classes.length > 0 && ` (${classes.join(', ')})`}
          </div>
          <div dir="auto">
            {OUTCOMES[outcome] ?? outcome}
            {answeredBy !== undefined && `, ${visibleName(answeredBy)}`} ·{' '}
            {conversationId !== undefined && (
              <>
                <a href={fragmentOf('c', conversationId)}>{visibleName(conversationId)}</a> ·{' '}
              </>
            )}
            <time dateTime={new Date(at).toISOString()} title={momentOf(at)}>
              {agoOf(at)}
            </time>
            {review && ` · ${visibleName(review.by)} said it was ${review.correct ? 'right' : 'wrong'}`}
          </div>
          <FaultLine fault={action.fault} />
        </div>
      }
    >
      {!review && (
        <>
          <ActionButton action={action} work={judge(true)} about={subject.text.slice(0, 60)}>
            Right
          </ActionButton>
          <ActionButton action={action} work={judge(false)} about={subject.text.slice(0, 60)}>
            Wrong
          </ActionButton>
        </>
      )}
    </Item>
  )
}

/** What was held, denied, judged or excepted, newest first. */
export const VerdictsTab = () => {
  const { query, older, rows } = usePages('verdicts', ['safety'], async (before: string | undefined) => {
    const page = await askDaemon('GET /safety/verdicts', { ...(before !== undefined && { before }) })
    return { rows: page.verdicts, next: page.next }
  })
  return (
    <Loaded query={query}>
      {() =>
        rows.length > 0 ? (
          <>
            <ul class="items">
              {rows.map(verdict => (
                <VerdictRow key={verdict.id} verdict={verdict} />
              ))}
            </ul>
            <MoreRow label="Show older verdicts" of={older} />
          </>
        ) : (
          <p class="empty quiet">What the policy held, denied or excepted appears here, for 90 days.</p>
        )
      }
    </Loaded>
  )
}
