import { useSignal } from '@preact/signals'
import type { SessionRow, SessionState } from '../../../../agent/contract.js'
import { askDaemon } from '../../data/api.js'
import { fragmentOf, goTo } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { rowsOfMessage } from '../../run/record-rows.js'
import { AskButton } from '../../ui/dialog.js'
import { useSettled } from '../../ui/fields.js'
import { countText, momentOf, visibleName } from '../../ui/format.js'
import { Item, Loaded, PageFrame, type ToneWord } from '../../ui/page.js'
import { MoreRow, useFurther } from '../../ui/lists/more.js'
import { useRead } from '../../ui/read.js'
import { SearchField } from '../../ui/search-field.js'
import { RowView } from '../conversation/rows.js'
import { reaches, type PageProps } from '../registry.js'

const STATES: { readonly [state in SessionState]: ToneWord } = {
  live: ['good', 'On the board'],
  archived: ['', 'Archived'],
  discarded: ['', 'Record only'],
}

const SessionItem = ({ session }: { session: SessionRow }) => {
  const { id, title, state, updatedAt, total, openedBy, snippet } = session
  // Conversations of the board have a page of their own, with everything that can be done there.
  const address = state === 'discarded' ? fragmentOf('sessions', id) : fragmentOf('c', id)
  return (
    <Item
      title={<a href={address}>{visibleName(title)}</a>}
      state={STATES[state] ?? ['', state]}
      detail={
        <>
          {snippet && <div dir="auto">{visibleName(snippet.text)}</div>}
          {momentOf(updatedAt)} · {countText(total)} {total === 1 ? 'message' : 'messages'} · begun by{' '}
          {visibleName(openedBy)}
        </>
      }
    />
  )
}

const List = () => {
  const words = useSignal('')
  const state = useSignal<SessionState | ''>('')
  const query = useSettled(words.value.trim())
  const key = `${state.value} ${query}`
  const asked = { ...(query && { query }), ...(state.value && { state: state.value }) }
  const first = useRead(key, () => askDaemon('GET /sessions', asked))
  const older = useFurther(key, first.data?.next, async before => {
    const page = await askDaemon('GET /sessions', { ...asked, before })
    return { rows: page.sessions, next: page.next }
  })
  return (
    <PageFrame title="Past sessions">
      <div class="row">
        <SearchField
          main
          class="grow"
          label="Search what was said"
          placeholder="Search titles and what was said"
          value={words}
        />
        <select
          class="input"
          aria-label="State"
          value={state.value}
          onChange={event => {
            state.value = event.currentTarget.value as SessionState | ''
          }}
        >
          <option value="">All</option>
          <option value="live">On the board</option>
          <option value="archived">Archived</option>
          <option value="discarded">Record only</option>
        </select>
      </div>
      <Loaded query={first}>
        {({ sessions, indexing }) => (
          <>
            {indexing && <p class="notice">What was said is still being indexed: more may be found in a moment.</p>}
            {sessions.length === 0 ? (
              <p class="quiet">
                {query || state.value
                  ? 'No conversation fits.'
                  : 'Every conversation that was ever recorded appears here, also when it was discarded.'}
              </p>
            ) : (
              <ul class="items">
                {[...sessions, ...older.rows].map(session => (
                  <SessionItem key={session.id} session={session} />
                ))}
              </ul>
            )}
            <MoreRow label="Show older sessions" of={older} />
          </>
        )}
      </Loaded>
    </PageFrame>
  )
}

/** The rows of a record that are read at once. */
const ROWS = 200

const One = ({ id }: { id: string }) => {
  const limit = useSignal(ROWS)
  const record = useRead(`${id} ${limit.value}`, () => askDaemon('GET /sessions/{id}', { id, limit: limit.value }))
  const { title = id, state, total = 0, messages = [] } = record.data ?? {}
  return (
    <PageFrame
      title={visibleName(title)}
      tools={
        <>
          <a class="button" href={fragmentOf('sessions')}>
            All sessions
          </a>
          {state === 'discarded' && reaches(person.value?.role, 'maintainer') && (
            <AskButton
              label="Delete"
              about="this record"
              title="Delete this record for good?"
              work={async () => {
                await askDaemon('DELETE /sessions/{id}', { id })
                goTo('sessions')
              }}
            >
              <p>What was said, and the logs of its commands, are deleted. This cannot be undone.</p>
            </AskButton>
          )}
        </>
      }
    >
      <Loaded query={record}>
        {() => (
          <>
            {total > messages.length && (
              <p>
                <button
                  class="button"
                  type="button"
                  onClick={() => {
                    limit.value = Math.min(1_000, limit.value + ROWS)
                  }}
                >
                  Show earlier messages
                </button>
              </p>
            )}
            {messages.flatMap(rowsOfMessage).map(row => (
              <div key={row.key} class="transcript-row">
                <RowView row={row} />
              </div>
            ))}
          </>
        )}
      </Loaded>
    </PageFrame>
  )
}

/** Every conversation that was ever recorded: found by what was said, and read. */
export const SessionsPage = ({ rest: [id] }: PageProps) => (id === undefined ? <List /> : <One key={id} id={id} />)
