import { useSignal, useSignalEffect, type Signal } from '@preact/signals'
import type { Card, CardReply } from '../../../../agent/contract.js'
import { draftOf, keepDraft } from '../../data/drafts.js'
import { fragmentOf } from '../../data/route.js'
import type { ActionState } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { visibleText } from '../../ui/format.js'

/** A card that waits, and how it is answered. */
export interface AnswerProps<C extends Card> {
  readonly card: C
  readonly action: ActionState
  readonly answer: (reply: CardReply) => Promise<unknown>
}

/** Where what a person began to answer is kept, until it is sent. */
export const answerPlace = ({ requestId }: Pick<Card, 'requestId'>): string => `answer ${requestId}`

/** The words of an answer, as the person left them. */
export const useAnswerWords = (card: Card): Signal<string> => {
  const place = answerPlace(card)
  const words = useSignal(draftOf(place))
  useSignalEffect(() => void keepDraft(place, words.value))
  return words
}

/** What the agent is told with an answer. */
export const Feedback = ({ words }: { words: Signal<string> }) => (
  <label class="field">
    <span class="small quiet">What the agent is told (optional)</span>
    <input value={words.value} onInput={event => (words.value = event.currentTarget.value)} />
  </label>
)

/** A card that hands something to a person. */
export type HelpCard = Extract<Card, { kind: 'browser_help' | 'terminal_help' }>

/** What is handed over, and the way to it. */
export const HelpText = ({ card: { kind, session, message } }: { card: HelpCard }) => (
  <>
    <p>{visibleText(message)}</p>
    <p>
      <a href={kind === 'browser_help' ? fragmentOf('browsers', session) : fragmentOf('terminals', session)}>
        Open the {kind === 'browser_help' ? 'browser' : 'terminal'}
      </a>
    </p>
  </>
)

/** The answers to a card that hands something over. */
export const Help = ({ card, action, answer }: AnswerProps<HelpCard>) => {
  const words = useAnswerWords(card)
  const { kind, requestId } = card
  const say = (helped: boolean) => answer({ kind, requestId, helped, ...(words.value && { note: words.value }) })
  return (
    <div class="stack">
      <HelpText card={card} />
      <Feedback words={words} />
      <div class="card-actions">
        <ActionButton action={action} class="primary" work={() => say(true)}>
          Done
        </ActionButton>
        <ActionButton action={action} class="danger apart-button" work={() => say(false)}>
          Not done
        </ActionButton>
      </div>
    </div>
  )
}
