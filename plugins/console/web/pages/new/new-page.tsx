import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { askUntilAnswered } from '../../data/api.js'
import { draftOf, keepDraft } from '../../data/drafts.js'
import { fragmentOf, goTo } from '../../data/route.js'
import { UnansweredMessage } from '../../data/unanswered.js'
import { useAction } from '../../ui/action.js'
import { CheckField, ChoiceField, TextField } from '../../ui/fields.js'
import { Icon } from '../../ui/icons.js'
import { turnOptionsOf, useTurnChoice } from '../conversation/turn-choice.js'
import { TurnFields } from '../conversation/turn-fields.js'
import { UncommittedNote } from '../conversation/uncommitted-note.js'
import type { PageProps } from '../registry.js'
import { AttachButton, MessageFileList, useMessageFiles } from '../conversation/message-files.js'
import { FaultLine } from '../../ui/page.js'

const newConversation = (): string =>
  `c-${[...crypto.getRandomValues(new Uint32Array(2))].map(one => one.toString(36)).join('')}`

/** The form that starts a conversation, or forks one at a message: `#/new`, `#/new/ID/KEEP`. */
export const NewPage = ({ rest }: PageProps) => {
  const [from, keep] = rest
  const draft = from ? `new ${from}` : 'new'
  const prompt = useSignal(draftOf(draft))
  const title = useSignal('')
  const isolated = useSignal(true)
  const startIn = useSignal('')
  const choice = useTurnChoice()
  const files = useSignal<'then' | 'now'>('now')
  const attached = useMessageFiles(draft)
  const list = attached.files.list.value
  const ready = list.every(({ state }) => state === 'there') && (prompt.value.trim() || list.length > 0)
  const action = useAction()
  // Both are kept until an answer comes, so that sending the same text again starts nothing twice.
  const conversation = useRef(newConversation())
  const unanswered = useRef(new UnansweredMessage())
  const start = async () => {
    const conversationId = conversation.current
    const started = await action.run(() =>
      askUntilAnswered('POST /agent', {
        conversationId,
        messageId: unanswered.current.idFor(prompt.value),
        prompt: prompt.value,
        ...(list.length && { attachments: list.map(({ path }) => path) }),
        isolated: isolated.value,
        ...(title.value.trim() && { title: title.value.trim() }),
        ...(startIn.value.trim() && { startIn: startIn.value.trim() }),
        ...turnOptionsOf(choice),
        ...(from && { forkOf: { conversationId: from, keep: Number(keep), files: files.value } }),
      }),
    )
    if (!started) return
    keepDraft(draft, '')
    attached.files.take()
    goTo('c', conversationId)
  }
  return (
    <>
      <header class="page-head">
        <a class="button plainly back" href={from ? fragmentOf('c', from) : fragmentOf('fleet')} aria-label="Back">
          <Icon name="back" />
        </a>
        <h1>{from ? 'Fork the conversation' : 'New conversation'}</h1>
      </header>
      <main class="page-body">
        <form
          class="stack new-form"
          onDragOver={event => attached.possible && event.preventDefault()}
          onDrop={event => attached.take(event, event.dataTransfer)}
          onSubmit={event => {
            event.preventDefault()
            void start()
          }}
        >
          <label class="field">
            What should the agent do?
            <textarea
              required={list.length === 0}
              rows={8}
              data-key="composer"
              dir="auto"
              value={prompt.value}
              onInput={event => {
                prompt.value = event.currentTarget.value
                keepDraft(draft, prompt.value)
              }}
              onPaste={event => attached.take(event, event.clipboardData)}
              onKeyDown={event => {
                if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !event.isComposing)
                  event.currentTarget.form?.requestSubmit()
              }}
            />
          </label>
          <MessageFileList of={attached} />
          <div class="row">
            <AttachButton to={attached} />
          </div>
          <CheckField
            label="Work in a private copy: nothing changes in the workspace until the work is landed"
            value={isolated}
          />
          {isolated.value && <UncommittedNote />}
          {from && (
            <ChoiceField
              label="Files"
              value={files}
              choices={[
                ['now', 'As they are now'],
                ['then', 'As they were at that message'],
              ]}
            />
          )}
          <details>
            <summary>More</summary>
            <div class="stack more-fields">
              <TextField label="Title" value={title} maxLength={80} />
              <TurnFields choice={choice} usual={{ model: 'The default one', persona: 'None', mode: 'As usual' }} />
              <TextField label="Start folder" value={startIn} maxLength={200} placeholder="The root of the workspace" />
            </div>
          </details>
          <div class="row">
            <button class="button primary" disabled={action.busy || !ready}>
              Start
            </button>
          </div>
          <FaultLine fault={action.fault} />
        </form>
      </main>
    </>
  )
}
