import { useSignal } from '@preact/signals'
import type { ShieldPreview, ShieldTokenRow } from '../../../../shield/contract.js'
import { askDaemon } from '../../data/api.js'
import { useAction } from '../../ui/action.js'
import { AskButton } from '../../ui/dialog.js'
import { TextField } from '../../ui/fields.js'
import { agoOf, countText, visibleName, visibleText } from '../../ui/format.js'
import { FaultLine, Item } from '../../ui/page.js'

const PreviewForm = () => {
  const text = useSignal('')
  const found = useSignal<ShieldPreview | undefined>(undefined)
  const action = useAction()
  return (
    <section aria-labelledby="preview-heading">
      <h2 id="preview-heading">What would leave</h2>
      <form
        class="stack"
        onSubmit={event => {
          event.preventDefault()
          void action.run(async () => {
            found.value = await askDaemon('POST /shield/preview', { text: text.value })
          })
        }}
      >
        <TextField label="Text" required value={text} rows={4} />
        <div>
          <button class="button" type="submit" disabled={action.busy}>
            Show what leaves
          </button>
        </div>
      </form>
      <FaultLine fault={action.fault} />
      <p role="status" class="prose" dir="auto">
        {found.value
          && (found.value.blocked ? 'A request with this text is refused.' : visibleText(found.value.masked))}
      </p>
    </section>
  )
}

const TokenItem = ({ row: { token, detector, hint, firstSeen, uses, restored } }: { row: ShieldTokenRow }) => (
  <Item
    title={<code>{token}</code>}
    detail={`${detector}, like ${visibleName(hint)}`}
    facts={`${countText(uses)} sent, ${countText(restored)} restored, ${agoOf(firstSeen)}`}
  />
)

const ConversationForm = ({ maintains }: { maintains: boolean }) => {
  const id = useSignal('')
  const text = useSignal('')
  const said = useSignal('')
  const rows = useSignal<readonly ShieldTokenRow[] | undefined>(undefined)
  const action = useAction()
  const restore = async () => {
    const done = await askDaemon('POST /shield/restore', { conversationId: id.value.trim(), text: text.value })
    said.value = done.text
  }
  const list = async () => {
    const { tokens } = await askDaemon('GET /shield/conversations/{id}', { id: id.value.trim(), limit: 1_000 })
    rows.value = tokens
  }
  return (
    <section aria-labelledby="restore-heading">
      <h2 id="restore-heading">Tokens of a conversation</h2>
      <form
        class="stack"
        onSubmit={event => {
          event.preventDefault()
          void action.run(restore)
        }}
      >
        <TextField label="Conversation" required value={id} />
        <TextField label="Text with tokens" required value={text} rows={3} />
        <div class="row">
          <button class="button" type="submit" disabled={action.busy}>
            Restore
          </button>
          {maintains && (
            <>
              <button
                class="button"
                type="button"
                disabled={action.busy || id.value.trim() === ''}
                onClick={() => void action.run(list)}
              >
                List tokens
              </button>
              {id.value.trim() !== '' && (
                <AskButton
                  label="Forget"
                  about={`tokens of ${visibleName(id.value.trim())}`}
                  title="Forget the tokens of this conversation?"
                  work={async () => {
                    await askDaemon('DELETE /shield/conversations/{id}', { id: id.value.trim() })
                    await list()
                  }}
                >
                  <p>Tokens in logs of providers can never be resolved again. The record here keeps its real text.</p>
                </AskButton>
              )}
            </>
          )}
        </div>
      </form>
      <FaultLine fault={action.fault} />
      <p role="status" class="prose" dir="auto">
        {said.value && visibleText(said.value)}
      </p>
      {rows.value && (
        <ul class="items" aria-label="Tokens">
          {rows.value.map(row => (
            <TokenItem key={row.token} row={row} />
          ))}
        </ul>
      )}
      {rows.value?.length === 0 && <p class="quiet">It has no tokens.</p>}
    </section>
  )
}

/** What a text would become, and a conversation's tokens. */
export const TryTab = ({ maintains }: { maintains: boolean }) => (
  <>
    <PreviewForm />
    <ConversationForm maintains={maintains} />
  </>
)
