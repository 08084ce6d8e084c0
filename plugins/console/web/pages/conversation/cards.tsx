import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import type { Card, CardReply, PermissionCard, Question, QuestionCard } from '../../../../agent/contract.js'
import { askUntilAnswered } from '../../data/api.js'
import { draftOf, keepDraft } from '../../data/drafts.js'
import { fragmentOf } from '../../data/place.js'
import { person } from '../../data/session/session.js'
import type { CardRow } from '../../run/row-kinds.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { AskButton } from '../../ui/dialog.js'
import { visibleName, visibleText } from '../../ui/format.js'
import { Markdown } from '../../ui/markdown.js'
import { reaches } from '../registry.js'
import { FaultLine } from '../../ui/page.js'
import { Pairs } from '../../ui/pairs.js'
import { answerPlace, Feedback, Help, HelpText, useAnswerWords, type AnswerProps, type HelpCard } from './help-cards.js'
import { TextBlock } from '../../ui/text-block.js'

const ReplyText = ({ reply, by }: { reply?: CardReply | undefined; by?: string | undefined }) => {
  const who = by ? ` by ${by}` : ''
  if (!reply) return <p class="quiet">Nobody answered.</p>
  switch (reply.kind) {
    case 'plan':
      return (
        <p>
          {reply.approve ? 'Approved' : 'Not approved'}
          {who}
          {reply.feedback && `: ${visibleText(reply.feedback)}`}
        </p>
      )
    case 'question':
      return (
        <p>
          {reply.cancelled
            ? `Cancelled${who}`
            : `Answered${who}: ${visibleText(
                Object.values(reply.answers ?? {})
                  .flat()
                  .join(', ') || 'skipped',
              )}`}
        </p>
      )
    case 'permission':
      return (
        <p>
          {{ once: 'Allowed once', always: 'Allowed always', deny: 'Denied' }[reply.decision]}
          {who}
          {reply.feedback && `: ${visibleText(reply.feedback)}`}
        </p>
      )
    case 'browser_help':
    case 'terminal_help':
      return (
        <p>
          {(reply.helped ? 'Done' : 'Not done') + who}
          {reply.note && `: ${visibleText(reply.note)}`}
        </p>
      )
    case 'capability_offer':
      return <p>{(reply.connect ? 'Agreed' : 'Declined') + who}</p>
    default:
      return <p>{(reply.approve ? 'Approved' : 'Not approved') + who}</p>
  }
}

const OneQuestion = ({
  question,
  chosen,
  choose,
}: {
  question: Question
  chosen: readonly string[]
  choose: (labels: readonly string[]) => void
}) => {
  const { options, multiSelect, header } = question
  const group = useId()
  const labels = new Set(options.map(({ label }) => label))
  const own = chosen.find(label => !labels.has(label)) ?? ''
  const pick = (label: string, on: boolean) =>
    choose(multiSelect ? [...chosen.filter(one => one !== label), ...(on ? [label] : [])] : [label])
  return (
    <fieldset class="question">
      <legend>{visibleText(question.question)}</legend>
      {options.map(({ label, description, preview }) => (
        <div key={label}>
          <label class="option">
            <input
              type={multiSelect ? 'checkbox' : 'radio'}
              name={group}
              checked={chosen.includes(label)}
              onChange={event => pick(label, event.currentTarget.checked)}
            />
            <span>
              <strong>{visibleText(label)}</strong>
              {description && <span class="quiet"> {visibleText(description)}</span>}
            </span>
          </label>
          {preview && <TextBlock what="the preview" text={preview} />}
        </div>
      ))}
      <label class="field">
        <span class="small quiet">In your own words</span>
        <input
          aria-label={`In your own words: ${header}`}
          value={own}
          onInput={event => {
            const words = event.currentTarget.value
            const kept = multiSelect ? chosen.filter(label => labels.has(label)) : []
            choose(words ? [...kept, words] : kept)
          }}
        />
      </label>
    </fieldset>
  )
}

interface Chosen {
  readonly [question: string]: readonly string[]
}

/** The answers that a draft holds. */
const chosenOf = (draft: string): Chosen => {
  try {
    return Object.fromEntries(
      Object.entries(JSON.parse(draft || '{}') as Chosen).filter(([, labels]) => Array.isArray(labels)),
    )
  } catch {
    return {}
  }
}

const Questions = ({ card, action, answer }: AnswerProps<QuestionCard>) => {
  const place = answerPlace(card)
  const chosen = useSignal<Chosen>(chosenOf(draftOf(place)))
  const { requestId, questions } = card
  const send = () => {
    const answers = Object.fromEntries(
      questions.flatMap(({ question, multiSelect }) => {
        const labels = chosen.value[question] ?? []
        return labels.length ? [[question, multiSelect ? [...labels] : labels[0]!] as const] : []
      }),
    )
    return answer({ kind: 'question', requestId, answers })
  }
  return (
    <div class="stack">
      {questions.map(question => (
        <OneQuestion
          key={question.question}
          question={question}
          chosen={chosen.value[question.question] ?? []}
          choose={labels => {
            chosen.value = { ...chosen.value, [question.question]: labels }
            keepDraft(place, JSON.stringify(chosen.value))
          }}
        />
      ))}
      <div class="card-actions">
        <ActionButton
          action={action}
          class="primary"
          disabled={!Object.values(chosen.value).some(labels => labels.length)}
          work={send}
        >
          Answer
        </ActionButton>
        <ActionButton action={action} work={() => answer({ kind: 'question', requestId, answers: {} })}>
          Skip
        </ActionButton>
        <AskButton
          apart
          label="Stop the turn"
          about="that asks this"
          title="Stop the turn?"
          work={() => answer({ kind: 'question', requestId, cancelled: true })}
        >
          <p>The agent gets no answer and stops. Files that it has written stay.</p>
        </AskButton>
      </div>
    </div>
  )
}

const Permission = ({ card, action, answer }: AnswerProps<PermissionCard>) => {
  const words = useAnswerWords(card)
  const { requestId, toolName, displayName, title, description, reason, path, alwaysLabel } = card
  const decide = (decision: 'once' | 'always' | 'deny') =>
    answer({ kind: 'permission', requestId, decision, ...(words.value && { feedback: words.value }) })
  return (
    <div class="stack">
      <p>
        <strong>{visibleText(title ?? displayName ?? toolName)}</strong>
      </p>
      {description && <TextBlock class="code whole" what="what it asks for" text={description} />}
      {path && <p class="mono">{visibleText(path)}</p>}
      {reason && <p class="quiet">{visibleText(reason)}</p>}
      <Feedback words={words} />
      <div class="card-actions">
        <ActionButton action={action} class="primary" work={() => decide('once')}>
          Allow once
        </ActionButton>
        {alwaysLabel && (
          <ActionButton action={action} work={() => decide('always')}>
            Always allow {visibleText(alwaysLabel)}
          </ActionButton>
        )}
        <ActionButton action={action} class="danger apart-button" work={() => decide('deny')}>
          Deny
        </ActionButton>
      </div>
    </div>
  )
}

const offerFacts = (card: Card): readonly (readonly [string, string | undefined])[] => {
  if (card.kind === 'service_offer') {
    const { name, publisher, description, creditsPerRun, credits, request, why } = card.offer
    const left = credits && `${credits.remaining} of ${credits.allowance}`
    return [
      ['Service', `${name} (${publisher})`],
      ['What it does', description],
      ['Cost', `${creditsPerRun} credits`],
      ['Credits left', left],
      ['Request', request],
      ['Why', why],
    ]
  }
  if (card.kind === 'capability_offer')
    return [
      ['Connect', `${card.offer.name} (${card.offer.card})`],
      ['Connected already', card.offer.connected?.join(', ') || undefined],
      ['Why', card.offer.why],
    ]
  if (card.kind !== 'payment_offer') return []
  const { amountUsd, url, description, payTo, network, assetName, asset, spentTodayUsd, dailyCapUsd, why } = card.offer
  return [
    ['Amount', `$${amountUsd}`],
    ['For', description],
    ['Address', url],
    ['Paid to', payTo],
    ['With', `${assetName} (${asset}) on ${network}`],
    ['Spent today', `$${spentTodayUsd}, at most $${dailyCapUsd} a day`],
    ['Why', why],
  ]
}

const YES = {
  service_offer: 'Run it once',
  capability_offer: 'Connect',
  payment_offer: 'Pay once',
  plan: 'Approve the plan',
}

const Decision = ({ card, action, answer }: AnswerProps<Exclude<Card, QuestionCard | PermissionCard | HelpCard>>) => {
  const words = useAnswerWords(card)
  const { requestId, kind } = card
  const decide = (yes: boolean) =>
    answer(
      kind === 'capability_offer'
        ? { kind, requestId, connect: yes }
        : kind === 'plan'
          ? { kind, requestId, approve: yes, ...(words.value && { feedback: words.value }) }
          : { kind, requestId, approve: yes },
    )
  const may = kind === 'plan' || reaches(person.value?.role, 'maintainer')
  return (
    <div class="stack">
      {card.kind === 'plan' ? <Markdown text={card.text} /> : <Pairs rows={offerFacts(card)} />}
      {kind === 'plan' && <Feedback words={words} />}
      {may ? (
        <div class="card-actions">
          <ActionButton action={action} class="primary" work={() => decide(true)}>
            {YES[kind]}
          </ActionButton>
          <ActionButton action={action} class="danger apart-button" work={() => decide(false)}>
            {kind === 'plan' ? 'Not yet' : kind === 'payment_offer' ? 'Deny' : 'Decline'}
          </ActionButton>
        </div>
      ) : (
        <p class="quiet">A maintainer answers this.</p>
      )}
    </div>
  )
}

const NAMES: { readonly [kind in Card['kind']]: string } = {
  plan: 'Plan',
  question: 'Question',
  permission: 'Permission',
  browser_help: 'Help in the browser',
  terminal_help: 'Help in the terminal',
  service_offer: 'Service',
  capability_offer: 'Connection',
  payment_offer: 'Payment',
}

const Asked = ({ card }: { card: Card }) => {
  if (card.kind === 'plan') return <Markdown text={card.text} />
  if (card.kind === 'question') return <p>{visibleText(card.questions.map(({ question }) => question).join(' · '))}</p>
  if (card.kind === 'browser_help' || card.kind === 'terminal_help') return <HelpText card={card} />
  if (card.kind !== 'permission') return <Pairs rows={offerFacts(card)} />
  const { title, displayName, toolName, description } = card
  return (
    <>
      <p>{visibleText(title ?? displayName ?? toolName)}</p>
      {description && <TextBlock class="code whole" what="what it asks for" text={description} />}
    </>
  )
}

const UnknownCard = ({ kind }: { kind: string }) => (
  <p class="line quiet">A question of a kind that this page does not know: {visibleName(kind)}.</p>
)

/** A card that waits, with its answers. */
export const OpenCardView = ({ card }: { card: Card }) => {
  const action = useAction()
  const answer = async (reply: CardReply) => {
    await askUntilAnswered('POST /agent/reply', reply)
    keepDraft(answerPlace(card), '')
  }
  const props = { action, answer }
  if (!Object.hasOwn(NAMES, card.kind)) return <UnknownCard kind={card.kind} />
  return (
    <section class="card open" aria-label={NAMES[card.kind]}>
      <h2>{NAMES[card.kind]}</h2>
      {!reaches(person.value?.role, 'collaborator') ? (
        <Asked card={card} />
      ) : card.kind === 'question' ? (
        <Questions card={card} {...props} />
      ) : card.kind === 'permission' ? (
        <Permission card={card} {...props} />
      ) : card.kind === 'browser_help' || card.kind === 'terminal_help' ? (
        <Help card={card} {...props} />
      ) : (
        <Decision card={card} {...props} />
      )}
      <FaultLine fault={action.fault} />
    </section>
  )
}

/** A card in the transcript; an open one is answered above the composer. */
export const CardView = ({ row }: { row: CardRow }) => {
  const { card, open, reply, by, events } = row
  if (!Object.hasOwn(NAMES, card.kind)) return <UnknownCard kind={card.kind} />
  return (
    <section class="card" aria-label={NAMES[card.kind]}>
      <h2>{NAMES[card.kind]}</h2>
      <Asked card={card} />
      {open ? <p class="tag warn">Waits for an answer</p> : <ReplyText reply={reply} by={by} />}
      {reply?.kind === 'capability_offer' && reply.connect && card.kind === 'capability_offer' && (
        <p>
          <a href={fragmentOf('connections', card.offer.card)}>Connect {visibleName(card.offer.name)}</a>
        </p>
      )}
      {events.map((event, at) => (
        <p key={at} class="quiet">
          {visibleText(event)}
        </p>
      ))}
    </section>
  )
}
