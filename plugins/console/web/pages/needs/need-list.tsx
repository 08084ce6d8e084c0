import type { Need, NeedKind, NeedStatus } from '../../../../needs/contract.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { FormButton } from '../../ui/dialog.js'
import { agoOf, momentOf, visibleName, visibleText } from '../../ui/format.js'
import { Item, type ToneWord } from '../../ui/page.js'
import { reaches } from '../registry.js'
import { DeclineForm, GiveForm } from './need-forms.js'
import { TextBlock } from '../../ui/text-block.js'

const KINDS: { readonly [kind in NeedKind]: string } = {
  secret: 'a secret',
  account: 'an account',
  capability: 'a connection',
  decision: 'a decision',
  information: 'information',
  file: 'a file',
  hands: 'something done elsewhere',
}

const STATES: { readonly [status in NeedStatus]: ToneWord | undefined } = {
  open: undefined,
  given: ['good', 'Given'],
  declined: ['warn', 'Declined'],
  withdrawn: ['', 'Withdrawn'],
  expired: ['warn', 'Too late'],
}

const NeedRow = ({ need }: { need: Need }) => {
  const { kind, title, why, status, conversationId, conversationTitle, raisedAt, blocking, note } = need
  const { answers = {}, fields = [], expiresAt, settledBy, settledAt, allowed } = need
  return (
    <Item
      title={visibleName(title)}
      state={STATES[status]}
      detail={
        <div class="stack">
          <div dir="auto">
            {KINDS[kind] ?? kind} ·{' '}
            <a href={fragmentOf('c', conversationId)}>{visibleName(conversationTitle ?? conversationId)}</a> ·{' '}
            <time dateTime={new Date(raisedAt).toISOString()} title={momentOf(raisedAt)}>
              {agoOf(raisedAt)}
            </time>
            {blocking === false && ' · it goes on meanwhile'}
            {status === 'open' && expiresAt !== undefined && ` · until ${momentOf(expiresAt)}`}
          </div>
          <TextBlock class="said-text" dir="auto" text={why} />
          {fields
            .filter(({ key }) => answers[key] !== undefined)
            .map(({ key, label }) => (
              <div key={key} dir="auto">
                {visibleName(label)}: <span class="mono">{visibleText(String(answers[key]))}</span>
              </div>
            ))}
          {note && <div dir="auto">{visibleText(note)}</div>}
          {settledBy !== undefined && (
            <div dir="auto">
              {visibleName(settledBy)}
              {settledAt !== undefined && ` · ${agoOf(settledAt)}`}
            </div>
          )}
          {status === 'open' && !allowed.give && allowed.reason && <div>You cannot give it: {allowed.reason}.</div>}
        </div>
      }
    >
      {status === 'open' && (
        <>
          {allowed.give && (
            <FormButton label="Give" about={title} primary form={close => <GiveForm need={need} close={close} />} />
          )}
          {reaches(person.value?.role, 'collaborator') && (
            <FormButton label="Decline" about={title} form={close => <DeclineForm need={need} close={close} />} />
          )}
        </>
      )}
    </Item>
  )
}

/** Needs with what can be done about them. */
export const NeedList = ({ needs }: { needs: readonly Need[] }) => (
  <ul class="items">
    {needs.map(need => (
      <NeedRow key={need.id} need={need} />
    ))}
  </ul>
)
