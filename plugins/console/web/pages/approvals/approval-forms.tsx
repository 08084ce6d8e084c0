import { useSignal } from '@preact/signals'
import type { Approval } from '../../../../approvals/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { DialogForm } from '../../ui/dialog.js'
import { CheckField, TextField } from '../../ui/fields.js'
import { visibleName } from '../../ui/format.js'

/** Reads the queue again after a change. */
export const approvalsChanged = () => refetch(new Set(['approvals']))

/** What an item is called in lists and forms. */
export const approvalName = ({ post, action }: Approval): string =>
  visibleName(post ? `${post.platform} ${post.title || post.target || ''}`.trim() : (action?.summary ?? ''))

interface ApprovalFormProps {
  readonly approval: Approval
  readonly close: () => void
}

/** Says yes to what is shown. */
export const ApproveForm = ({ approval, close }: ApprovalFormProps) => {
  const { id, digest, kind, scheduledAt } = approval
  const now = useSignal(false)
  return (
    <DialogForm
      title={`Approve: ${approvalName(approval)}`}
      verb="Approve"
      close={close}
      work={async () => {
        await askDaemon('POST /approvals/{id}/approve', { id, digest, ...(now.value && { now: true }) })
        approvalsChanged()
      }}
    >
      <p>
        The sandbox carries out exactly what is shown, once.
        {kind === 'post' && ' You can recall it for a minute.'}
      </p>
      {(kind === 'post' || scheduledAt !== undefined) && (
        <CheckField label="Send it now, without waiting" value={now} />
      )}
    </DialogForm>
  )
}

/** Says no. */
export const DeclineApproval = ({ approval, close }: ApprovalFormProps) => {
  const reason = useSignal('')
  return (
    <DialogForm
      title={`Decline: ${approvalName(approval)}`}
      verb="Decline"
      danger
      close={close}
      work={async () => {
        const why = reason.value.trim() && { reason: reason.value.trim() }
        await askDaemon('POST /approvals/{id}/decline', { id: approval.id, ...why })
        approvalsChanged()
      }}
    >
      <TextField label="Why" value={reason} />
    </DialogForm>
  )
}

/** Changes what would be sent; an earlier yes is lost. */
export const EditApproval = ({ approval, close }: ApprovalFormProps) => {
  const { id, kind, post, action, actsAs, scheduledAt, why, conversationId, tellAgent } = approval
  const target = useSignal(post?.target ?? '')
  const title = useSignal(post?.title ?? '')
  const text = useSignal(post?.content ?? JSON.stringify(action?.args ?? {}, undefined, 2))
  const summary = useSignal(action?.summary ?? '')
  return (
    <DialogForm
      title={`Edit: ${approvalName(approval)}`}
      verb="Save"
      close={close}
      work={async () => {
        const { title: _title, target: _target, ...body } = post ?? { platform: '' }
        await askDaemon('POST /approvals', {
          ...{ id, kind },
          ...(post && {
            post: {
              ...body,
              content: text.value,
              ...(target.value && { target: target.value }),
              ...(title.value && { title: title.value }),
            },
          }),
          ...(action && {
            action: { ...action, summary: summary.value, args: JSON.parse(text.value) as { [key: string]: unknown } },
          }),
          ...(actsAs !== undefined && { actsAs }),
          ...(scheduledAt !== undefined && { scheduledAt }),
          ...(why !== undefined && { why }),
          ...(conversationId !== undefined && { conversationId }),
          ...(tellAgent !== undefined && { tellAgent }),
        })
        approvalsChanged()
      }}
    >
      {post ? (
        <>
          <TextField label="Target" value={target} />
          <TextField label="Title" value={title} />
          <TextField label="Content" value={text} rows={8} required />
        </>
      ) : (
        <>
          <TextField label="Summary" value={summary} required />
          <TextField label="Arguments, as JSON" value={text} rows={8} required />
        </>
      )}
    </DialogForm>
  )
}
