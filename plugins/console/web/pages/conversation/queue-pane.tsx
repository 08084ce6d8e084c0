import { useSignal } from '@preact/signals'
import { askDaemon } from '../../data/api.js'
import { draftOf, keepDraft } from '../../data/drafts.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { visibleText } from '../../ui/format.js'
import { useRead } from '../../ui/read.js'
import { reaches } from '../registry.js'
import { FaultLine } from '../../ui/page.js'

interface QueuePaneProps {
  readonly id: string
  readonly waiting: number
  readonly paused: boolean
  /** How often others changed the queue during the run. */
  readonly changes: number
}

/** The messages that wait for the conversation to be free. */
export const QueuePane = ({ id, waiting, paused, changes }: QueuePaneProps) => {
  const ordered = useSignal(0)
  const { data } = useRead(`${waiting} ${paused} ${changes} ${ordered.value}`, () =>
    askDaemon('GET /agents/{id}/queue', { id }),
  )
  const action = useAction()
  const mayWork = reaches(person.value?.role, 'collaborator')
  const messages = data?.messages ?? []
  const ids = messages.map(({ messageId }) => messageId)
  const order = async (messageIds: string[], start = false) => {
    await askDaemon('POST /agents/{id}/queue/order', { id, messageIds, ...(start && { start }) })
    ordered.value += 1
  }
  return (
    <section class="queue" aria-label="Queued messages">
      <div class="row apart">
        <h2>
          {waiting} queued {paused && <span class="tag warn">Paused</span>}
        </h2>
        {mayWork && paused && ids.length > 0 && (
          <ActionButton action={action} work={() => order(ids, true)}>
            Start the first
          </ActionButton>
        )}
      </div>
      <ol>
        {messages.map(({ messageId, text }, at) => (
          <li key={messageId} class="row">
            <span class="grow one-line" dir="auto">
              {visibleText(text)}
            </span>
            {mayWork && at > 0 && (
              <ActionButton
                action={action}
                class="plainly"
                work={() => order([messageId, ...ids.filter(one => one !== messageId)])}
              >
                First
              </ActionButton>
            )}
            {mayWork && (
              <ActionButton
                action={action}
                class="plainly"
                work={async () => {
                  const { removed } = await askDaemon('DELETE /agents/{id}/queue/{messageId}', { id, messageId })
                  keepDraft(id, [draftOf(id), removed.text].filter(Boolean).join('\n'))
                }}
              >
                Take back
              </ActionButton>
            )}
          </li>
        ))}
      </ol>
      <FaultLine fault={action.fault} />
    </section>
  )
}
