import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { AgentChange } from '../../../../agents/contract.js'
import { askDaemon, askUntilAnswered } from '../../data/api.js'
import { UnansweredMessage } from '../../data/unanswered.js'
import { useAction } from '../../ui/action.js'
import { useLastAnswer, useQuery } from '../../ui/query.js'
import { ComparedTexts } from '../../ui/code/compared-texts.js'
import type { PickedLines } from '../../ui/code/diff-view.js'
import { FaultLine } from '../../ui/page.js'

interface FilePaneProps {
  readonly id: string
  readonly repo: string
  readonly change: AgentChange
  /** The tip of the diff that lists it. */
  readonly tip: string
  readonly viewed: boolean
  readonly setViewed: (viewed: boolean) => void
  readonly mayComment: boolean
}

const Comment = ({ id, path, lines, close }: { id: string; path: string; lines: PickedLines; close: () => void }) => {
  const words = useSignal('')
  const action = useAction()
  const unanswered = useRef(new UnansweredMessage())
  const { from, to, text } = lines
  const where = from === to ? `line ${from}` : `lines ${from} to ${to}`
  const send = async () => {
    const fence = '`'.repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)))
    const prompt = `About ${path}, ${where}:\n\n${fence}\n${text}\n${fence}\n\n${words.value.trim()}`
    const messageId = unanswered.current.idFor(prompt)
    if (await action.run(() => askUntilAnswered('POST /agent', { conversationId: id, prompt, messageId }))) close()
  }
  return (
    <form
      class="comment stack"
      onSubmit={event => {
        event.preventDefault()
        void send()
      }}
    >
      <label class="field">
        Comment on {where}, for the agent
        <textarea
          required
          rows={3}
          dir="auto"
          value={words.value}
          onInput={event => {
            words.value = event.currentTarget.value
          }}
        />
      </label>
      <div class="row">
        <button class="button primary" disabled={action.busy || !words.value.trim()}>
          Send to the agent
        </button>
        <button class="button" type="button" onClick={close}>
          Cancel
        </button>
      </div>
      <FaultLine fault={action.fault} />
    </form>
  )
}

/** One changed file: both sides compared, marked as viewed, commented on. */
export const FilePane = ({ id, repo, change, tip, viewed, setViewed, mayComment }: FilePaneProps) => {
  const { path, status } = change
  const lines = useSignal<PickedLines | undefined>(undefined)
  const commenting = useSignal(false)
  const read = useQuery(`file ${id} ${repo} ${tip} ${path}`, ['landings'], () =>
    askDaemon('GET /agents/{id}/{repo}/file-diff', { id, repo, path }),
  )
  // While newer work is read the file stays, with a comment that a person writes.
  const sides = useLastAnswer(read)
  return (
    <ComparedTexts
      path={path}
      sides={sides}
      error={read.error}
      source={{ source: 'agent', agent: id, repo, path, status }}
      picked={picked => {
        lines.value = picked
      }}
      tools={
        <>
          {mayComment && (
            <button
              class="button"
              type="button"
              disabled={!lines.value}
              onClick={() => {
                commenting.value = true
              }}
            >
              Comment
            </button>
          )}
          <label class="check">
            <input type="checkbox" checked={viewed} onChange={event => setViewed(event.currentTarget.checked)} />
            Viewed
          </label>
        </>
      }
    >
      {commenting.value && lines.value && (
        <Comment
          id={id}
          path={path}
          lines={lines.value}
          close={() => {
            commenting.value = false
          }}
        />
      )}
    </ComparedTexts>
  )
}
