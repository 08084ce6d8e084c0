import type { Approval, ApprovalStatus } from '../../../../approvals/contract.js'
import { askDaemon } from '../../data/api.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { AskButton, FormButton } from '../../ui/dialog.js'
import { agoOf, momentOf, spanText, visibleName, visibleText } from '../../ui/format.js'
import { useNow } from '../../ui/now.js'
import { FaultLine, Item, type ToneWord } from '../../ui/page.js'
import { reaches } from '../registry.js'
import { approvalName, approvalsChanged, ApproveForm, DeclineApproval, EditApproval } from './approval-forms.js'
import { TextBlock } from '../../ui/text-block.js'
import { Copyable } from '../../ui/copy.js'

const STATES: { readonly [status in ApprovalStatus]: ToneWord | undefined } = {
  proposed: undefined,
  approved: ['good', 'Approved'],
  sending: ['', 'Being sent'],
  done: ['good', 'Done'],
  failed: ['warn', 'Failed'],
  declined: ['warn', 'Declined'],
}

/** The time that is left until something goes out. */
const Countdown = ({ until }: { until: number }) => {
  const left = until - useNow()
  return <div>{left > 0 ? `It goes out in ${spanText(left)}, ${momentOf(until)}.` : 'It goes out now.'}</div>
}

/** What would be sent, word for word. */
const Content = ({ approval: { post, action, actsAs, why } }: { approval: Approval }) => (
  <>
    {why && <div dir="auto">{visibleText(why)}</div>}
    {post?.target && (
      <div dir="auto">
        To <span class="mono">{visibleText(post.target)}</span>
      </div>
    )}
    {post?.title && <div dir="auto">{visibleText(post.title)}</div>}
    {action && (
      <div>
        <Copyable text={action.key} what="the action">
          {visibleText(action.key)}
        </Copyable>
      </div>
    )}
    <TextBlock
      class="said-text"
      dir="auto"
      what="what is proposed"
      text={post ? post.content : action?.args ? JSON.stringify(action.args, undefined, 2) : ''}
    />
    {post?.media?.length && <div dir="auto">Files: {post.media.map(visibleName).join(', ')}</div>}
    {actsAs !== undefined && <div dir="auto">As {visibleName(actsAs)}</div>}
  </>
)

/** The buttons of a maintainer for an item that is not being sent. */
const Decisions = ({ approval, run }: { approval: Approval; run: (work: () => Promise<unknown>) => void }) => {
  const { id, digest, status, via, ownerOnly } = approval
  const about = approvalName(approval)
  const isOpen = status === 'proposed' || status === 'failed'
  const button = (label: string, work: () => Promise<unknown>) => (
    <button class="button" type="button" onClick={() => run(work)}>
      {label}
      <span class="visually-hidden"> {about}</span>
    </button>
  )
  return (
    <>
      {isOpen && via !== 'nobody' && (!ownerOnly || reaches(person.value?.role, 'owner')) && (
        <FormButton label="Approve" about={about} primary form={close => <ApproveForm {...{ approval, close }} />} />
      )}
      {status === 'approved' && (
        <>
          {button('Recall', () => askDaemon('POST /approvals/{id}/recall', { id }))}
          {button('Send now', () => askDaemon('POST /approvals/{id}/approve', { id, digest, now: true }))}
        </>
      )}
      {status !== 'done' && (
        <FormButton label="Edit" about={about} form={close => <EditApproval {...{ approval, close }} />} />
      )}
      {isOpen && (
        <FormButton label="Decline" about={about} form={close => <DeclineApproval {...{ approval, close }} />} />
      )}
      <AskButton
        label="Remove"
        about={about}
        title={`Remove: ${about}`}
        work={async () => {
          await askDaemon('DELETE /approvals/{id}', { id })
          approvalsChanged()
        }}
      >
        <p>What was sent stays sent.</p>
      </AskButton>
    </>
  )
}

const ApprovalRow = ({ approval }: { approval: Approval }) => {
  const { status, createdAt, proposedBy, conversationId, problem, sendAt, attempts, reason, result, url } = approval
  const { approvedBy, declinedBy, ownerOnly } = approval
  const action = useAction()
  const { error, conversationId: posting } = attempts.at(-1) ?? {}
  return (
    <Item
      title={approvalName(approval)}
      state={STATES[status]}
      detail={
        <div class="stack">
          <div dir="auto">
            {conversationId === undefined ? (
              visibleName(proposedBy)
            ) : (
              <a href={fragmentOf('c', conversationId)}>{visibleName(proposedBy)}</a>
            )}{' '}
            · <time dateTime={new Date(createdAt).toISOString()}>{agoOf(createdAt)}</time>
            {approvedBy !== undefined && ` · approved by ${visibleName(approvedBy)}`}
            {declinedBy !== undefined && ` · declined by ${visibleName(declinedBy)}`}
          </div>
          <Content approval={approval} />
          {posting !== undefined && <a href={fragmentOf('c', posting)}>The conversation that posts it</a>}
          {status === 'approved' && sendAt !== undefined && <Countdown until={sendAt} />}
          {status === 'proposed' && problem !== undefined && (
            <div dir="auto">It cannot go out: {visibleName(problem)}.</div>
          )}
          {status === 'proposed' && ownerOnly && <div>It moves money: only the owner may approve it.</div>}
          {status === 'failed' && error !== undefined && <div dir="auto">{visibleText(error)}</div>}
          {reason && <div dir="auto">{visibleText(reason)}</div>}
          {result && <TextBlock class="said-text" dir="auto" what="the result" text={result} />}
          {url && (
            <div>
              <Copyable text={url} what="the address">
                {visibleText(url)}
              </Copyable>
            </div>
          )}
          <FaultLine fault={action.fault} />
        </div>
      }
    >
      {status !== 'sending' && reaches(person.value?.role, 'maintainer') && (
        <Decisions approval={approval} run={work => void action.run(work).then(approvalsChanged)} />
      )}
    </Item>
  )
}

/** Items of the queue with what can be done about them. */
export const ApprovalList = ({ approvals }: { approvals: readonly Approval[] }) => (
  <ul class="items">
    {approvals.map(approval => (
      <ApprovalRow key={approval.id} approval={approval} />
    ))}
  </ul>
)
