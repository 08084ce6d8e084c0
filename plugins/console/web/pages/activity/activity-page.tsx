import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { ActivityEvent, ActivityStatus } from '../../../../activity/contract.js'
import { askDaemon } from '../../data/api.js'
import { daySpan, MOST_SHOWN_ENTRIES, withNewest, withOlder } from '../../data/record-pages.js'
import { saveBytes } from '../../data/files/save.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { ChoiceField, TextField, useSettled } from '../../ui/fields.js'
import { countText, momentOf } from '../../ui/format.js'
import { VirtualList } from '../../ui/lists/list.js'
import { Bones, FaultLine, Loaded, PageFrame } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches, type PageProps } from '../registry.js'
import { ActivityRow } from './activity-row.js'

const KINDS = [
  ['', 'Everything'],
  ['turn.*', 'Turns'],
  ['message.*', 'Messages'],
  ['card.*', 'Answers to agents'],
  ['agent.*', 'Conversations'],
  ['workspace.*', 'Files'],
  ['network.*', 'Network'],
  ['session.*', 'Sign-ins'],
  ['member.*', 'Members'],
  ['invitation.*', 'Invitations'],
  ['token.*', 'Control tokens'],
  ['area.*', 'Areas'],
  ['access.*', 'Refused access'],
  ['secret.*', 'Secrets'],
  ['settings.*', 'Settings'],
  ['budget.*', 'Budgets'],
] as const
const DIRECTIONS = [
  ['', 'Anywhere'],
  ['out', 'Left the sandbox'],
  ['in', 'Came in'],
  ['system', 'Happened here'],
] as const
const OUTCOMES = [
  ['', 'Any'],
  ['ok', 'Succeeded'],
  ['error', 'Failed'],
] as const

/** Whether the record is unchanged, as a sentence. */
const Integrity = ({ status: { chain } }: { status: ActivityStatus }) =>
  chain.intact ? (
    <p class="quiet small record-state">
      <span class="tag good">Intact</span> {countText(chain.entries)} {chain.entries === 1 ? 'entry' : 'entries'}, every
      one bound to the one before. Checked {momentOf(chain.checkedAt)}.
    </p>
  ) : (
    <p class="notice bad record-state" role="alert">
      The record was changed{chain.brokenAt !== undefined && ` at entry ${countText(chain.brokenAt)}`}: from there on it
      proves nothing. Checked {momentOf(chain.checkedAt)}.
    </p>
  )

/** Saves the record of a day, or all of it, as it is stored. */
const ExportButton = ({ day }: { day: string }) => {
  const action = useAction()
  const save = async () => {
    const { data } = await askDaemon('GET /activity/export', daySpan(day) ?? {})
    saveBytes(`activity${day && `-${day}`}.ndjson`, 'application/x-ndjson', data)
  }
  return (
    <>
      <ActionButton action={action} work={save}>
        {day ? 'Export this day' : 'Export'}
      </ActionButton>
      <FaultLine fault={action.fault} />
    </>
  )
}

const PAGE = 100

/** The activity of the sandbox, newest first. */
export const ActivityPage = (_: PageProps) => {
  const words = useSignal('')
  const actor = useSignal('')
  const day = useSignal('')
  const kind = useSignal<(typeof KINDS)[number][0]>('')
  const direction = useSignal<(typeof DIRECTIONS)[number][0]>('')
  const outcome = useSignal<(typeof OUTCOMES)[number][0]>('')
  const [query, by] = [useSettled(words.value.trim()), useSettled(actor.value.trim())]
  const filter = {
    limit: PAGE,
    ...(query && { query }),
    ...(by && { actor: by }),
    ...(kind.value && { type: kind.value }),
    ...(direction.value && { direction: direction.value }),
    ...(outcome.value && { outcome: outcome.value }),
    ...daySpan(day.value),
  }
  const key = `activity ${JSON.stringify(filter)}`
  const newest = useQuery(key, ['activity'], () => askDaemon('GET /activity', filter))
  const status = useQuery('activity status', ['activity'], () => askDaemon('GET /activity/status'))
  const known = useSignal<readonly ActivityEvent[]>([])
  const next = useSignal<number | undefined>(undefined)
  const shownFor = useSignal('')
  /** The newest entry that is shown while the page does not follow. */
  const held = useSignal<number | undefined>(undefined)
  const action = useAction()
  useEffect(() => {
    if (!newest.data || newest.key !== key) return
    const before = shownFor.peek() === key ? known.peek() : []
    known.value = withNewest(before, newest.data.events)
    if (known.value === newest.data.events) next.value = newest.data.next
    if (shownFor.peek() !== key && held.peek() !== undefined) held.value = newest.data.events[0]?.seq ?? 0
    shownFor.value = key
  }, [newest.data, key])
  const shown = held.value === undefined ? known.value : known.value.filter(({ seq }) => seq <= held.value!)
  const fresh = known.value.length - shown.length
  const older = async () => {
    const page = await askDaemon('GET /activity', { ...filter, before: next.peek()! })
    known.value = withOlder(known.peek(), page.events)
    next.value = known.peek().length >= MOST_SHOWN_ENTRIES ? undefined : page.next
  }
  const items: readonly (ActivityEvent | 'more')[] = next.value === undefined ? shown : [...shown, 'more']
  return (
    <PageFrame
      title="Activity"
      fills
      tools={
        <>
          <label class="check">
            <input
              type="checkbox"
              checked={held.value === undefined}
              onChange={event => {
                held.value = event.currentTarget.checked ? undefined : (known.peek()[0]?.seq ?? 0)
              }}
            />
            Follow
          </label>
          {reaches(person.value?.role, 'owner') && <ExportButton day={day.value} />}
        </>
      }
    >
      <div class="filters">
        <TextField label="Search" type="search" value={words} placeholder="Words of an entry" />
        <ChoiceField label="Kind" value={kind} choices={KINDS} />
        <ChoiceField label="Where" value={direction} choices={DIRECTIONS} />
        <ChoiceField label="Outcome" value={outcome} choices={OUTCOMES} />
        <TextField label="By" type="search" value={actor} placeholder="E-mail or token:name" />
        <TextField label="Day" type="date" value={day} />
      </div>
      {status.data && <Integrity status={status.data} />}
      <FaultLine fault={action.fault} />
      {fresh > 0 && (
        <button
          class="button fresh-button"
          type="button"
          onClick={() => {
            held.value = known.peek()[0]?.seq
          }}
        >
          Show {countText(fresh)} new
        </button>
      )}
      {newest.error !== undefined && <Loaded query={newest}>{() => null}</Loaded>}
      {shownFor.value !== key && newest.error === undefined ? (
        <Bones />
      ) : shown.length === 0 ? (
        <p class="empty quiet">
          {query || by || kind.value || direction.value || outcome.value || day.value
            ? 'No entry fits these filters.'
            : 'What agents, people and programs do in this sandbox appears here.'}
        </p>
      ) : (
        <VirtualList
          label="Entries"
          items={items}
          keyOf={item => (item === 'more' ? item : item.id)}
          estimate={() => 58}
          render={item =>
            item === 'more' ? (
              <div class="more-row">
                <ActionButton action={action} work={older}>
                  Show older entries
                </ActionButton>
              </div>
            ) : (
              <ActivityRow entry={item} />
            )
          }
        />
      )}
    </PageFrame>
  )
}
