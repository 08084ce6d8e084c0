import { useSignal } from '@preact/signals'
import type { Redaction, ShareDetail, SharePreview } from '../../../../share/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { goTo } from '../../data/route.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { ChoiceField, TextField } from '../../ui/fields.js'
import { countText, sizeTextOf, visibleName } from '../../ui/format.js'
import { FaultLine } from '../../ui/page.js'
import { PreviewFrame } from './preview-frame.js'

const DETAILS = [
  ['messages', 'What was said'],
  ['everything', 'Also tool calls, changes, pictures and thinking'],
] as const

const KINDS: { readonly [kind in Redaction['kind']]: string } = {
  secret: 'stored secrets',
  pattern: 'keys',
  shield: 'tokens of the privacy shield',
  path: 'folders of this machine',
}

/** What was replaced, in words. */
export const redactionsText = (redactions: readonly Redaction[]): string =>
  redactions.length === 0
    ? 'Nothing had to be replaced.'
    : `Replaced: ${redactions.map(({ kind, count }) => `${KINDS[kind]} (${countText(count)})`).join(', ')}.`

const PreviewNotes = ({ preview }: { preview: SharePreview }) => (
  <>
    <p>{redactionsText(preview.redactions)}</p>
    {preview.pictures.length > 0 && (
      <p dir="auto">
        With the pictures{' '}
        {preview.pictures.map(({ path, sizeBytes }) => `${visibleName(path)} (${sizeTextOf(sizeBytes)})`).join(', ')}.
      </p>
    )}
    {preview.dropped.map(({ path, reason }) => (
      <p key={path} dir="auto">
        {visibleName(path)} is only named: {visibleName(reason)}.
      </p>
    ))}
    {preview.truncated && <p>The preview ends here; the page goes on.</p>}
  </>
)

/** Shares a conversation after a look at what leaves. */
export const ShareForm = ({ conversationId, shares }: { conversationId: string; shares: boolean }) => {
  const title = useSignal('')
  const detail = useSignal<ShareDetail>('messages')
  const expires = useSignal('')
  const preview = useSignal<SharePreview | undefined>(undefined)
  const [looking, sharing] = [useAction(), useAction()]
  const look = async () => {
    preview.value = undefined
    preview.value = await askDaemon('POST /share/preview', {
      ...{ conversationId, detail: detail.value },
      ...(title.value.trim() && { title: title.value.trim() }),
    })
    title.value = preview.value.title
  }
  const share = async () => {
    if (!preview.value) return
    await askDaemon('POST /share', {
      ...{ conversationId, title: preview.value.title, detail: preview.value.detail, expect: preview.value.digest },
      ...(expires.value && { expiresAt: new Date(expires.value).getTime() }),
    })
    refetch(new Set(['share']))
    preview.value = undefined
    goTo('share', conversationId)
  }
  // Exactly the page that was shown is shared, and its title and detail are parts of it.
  const asSeen = preview.value?.title === title.value.trim() && preview.value.detail === detail.value
  return (
    <section aria-label="New page">
      <h2>New page</h2>
      <div class="stack">
        <TextField label="Title" value={title} maxLength={80} hint="Left out: that of the conversation." />
        <ChoiceField label="With" value={detail} choices={DETAILS} />
        <TextField label="Until" type="datetime-local" value={expires} hint="Left out: until it is taken down." />
        <div class="card-actions">
          <ActionButton action={looking} work={look}>
            Preview
          </ActionButton>
        </div>
        <FaultLine fault={looking.fault} />
        {preview.value && (
          <>
            <PreviewNotes preview={preview.value} />
            {shares && !asSeen && <p class="notice">Preview it again to share it under this title.</p>}
            {shares && asSeen && (
              <div class="card-actions">
                <ActionButton action={sharing} work={share} about="the page">
                  Share
                </ActionButton>
              </div>
            )}
            <FaultLine fault={sharing.fault} />
            <PreviewFrame html={preview.value.html} label="Preview of the page" />
          </>
        )}
      </div>
    </section>
  )
}
