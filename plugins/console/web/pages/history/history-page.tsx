import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { Restored, Snapshot } from '../../../../history/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { followFiles } from '../../data/files/file-changes.js'
import { fragmentOf, goTo } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { DialogForm, FormButton } from '../../ui/dialog.js'
import { CheckField, TextField, useSettled } from '../../ui/fields.js'
import { agoOf, countText, filesText, momentOf, visibleName, visibleText } from '../../ui/format.js'
import { Icon } from '../../ui/icons.js'
import { VirtualList } from '../../ui/lists/list.js'
import { FaultLine, Loaded } from '../../ui/page.js'
import { MoreRow, usePages } from '../../ui/lists/more.js'
import { reaches, type PageProps } from '../registry.js'
import { PointPane } from './point-pane.js'
import { NothingChosen, TwoPanes } from '../../ui/two-panes.js'

const PAGE = 100
const TRIGGERS: { readonly [trigger in Snapshot['trigger']]: string } = {
  turn: 'After a turn',
  interval: 'In between',
  'pre-restore': 'Before a restore',
  restore: 'After a restore',
  user: 'Saved',
}

const pointTitle = ({ label, trigger }: Snapshot): string => visibleText(label ?? TRIGGERS[trigger] ?? trigger)

/** Reads again what a restore or a saved point changes. */
const historyChanged = (): void => refetch(new Set(['history', 'files', 'refs']))

const SaveForm = ({ close }: { close: () => void }) => {
  const label = useSignal('')
  const said = useSignal('')
  return (
    <DialogForm
      title="Save a point"
      verb="Save"
      close={close}
      work={async () => {
        const { saved } = await askDaemon('POST /history/snapshots', {
          ...(label.value.trim() && { label: label.value.trim() }),
        })
        historyChanged()
        if (saved) return undefined
        said.value = 'Nothing changed since the newest point.'
        return 'stays'
      }}
    >
      <p>It holds every file that git does not ignore, without dependencies and secrets. No branch moves.</p>
      <TextField label="Name" value={label} />
      <p role="status">{said.value}</p>
    </DialogForm>
  )
}

const PointRow = ({ point, current }: { point: Snapshot; current: boolean }) => (
  <a
    class={`side-link${current ? ' current' : ''}`}
    href={fragmentOf('history', point.id)}
    data-row={point.id}
    aria-current={current ? 'page' : undefined}
  >
    <span dir="auto">{pointTitle(point)}</span>
    <span class="quiet small row apart">
      <time dateTime={new Date(point.at).toISOString()} title={momentOf(point.at)}>
        {agoOf(point.at)}
        {point.by && ` by ${visibleName(point.by)}`}
      </time>
      <span>{countText(point.files)} changed</span>
    </span>
  </a>
)

/** What a restore did, and how it is taken back. */
const RestoredNotice = ({ done, close, undo }: { done: Restored; close: () => void; undo: () => Promise<void> }) => {
  const action = useAction()
  return (
    <div class="notice stack restored" role="status">
      <p>
        Restored {filesText(done.restored)} and removed {countText(done.removed)}. Branches stay: the difference is
        uncommitted.
      </p>
      {done.failed.length > 0 && (
        <ul>
          {done.failed.map(({ scope, path, message }) => (
            <li key={`${scope} ${path}`}>
              <span class="mono">{visibleName(`${scope}${path ? `: ${path}` : ''}`)}</span> {visibleText(message)}
            </li>
          ))}
        </ul>
      )}
      <FaultLine fault={action.fault} />
      <div class="row">
        <ActionButton action={action} work={undo}>
          Undo the restore
        </ActionButton>
        <button class="button" type="button" onClick={close}>
          Done
        </button>
      </div>
    </div>
  )
}

/** Saved points of the workspace: what changed in each, and going back to one. */
export const HistoryPage = ({ rest: [id, scope, path] }: PageProps) => {
  useEffect(followFiles, [])
  const file = useSignal('')
  const intervals = useSignal(false)
  const restored = useSignal<Restored | undefined>(undefined)
  const asked = {
    ...(file.value.trim() && { path: file.value.trim() }),
    ...(intervals.value && { intervals: true }),
  }
  const key = useSettled(JSON.stringify(asked))
  const {
    query,
    older,
    rows: points,
  } = usePages(`history ${key}`, ['history'], async (before: number | undefined) => {
    const page = { ...(JSON.parse(key) as typeof asked), ...(before !== undefined && { before }), limit: PAGE }
    const { snapshots, ...rest } = await askDaemon('GET /history/snapshots', page)
    return { ...rest, rows: snapshots, next: rest.before }
  })
  const maySave = reaches(person.value?.role, 'collaborator')
  const done = (result: Restored) => {
    restored.value = result
    historyChanged()
  }
  return (
    <>
      <header class="page-head">
        {id !== undefined && (
          <a class="button plainly narrow-only" href={fragmentOf('history')} aria-label="Back to the points">
            <Icon name="back" />
          </a>
        )}
        <h1 class="grow">History</h1>
        {maySave && <FormButton label="Save a point" primary form={close => <SaveForm close={close} />} />}
      </header>
      {restored.value && (
        <RestoredNotice
          key={restored.value.point}
          done={restored.value}
          close={() => {
            restored.value = undefined
          }}
          undo={async () => done(await askDaemon('POST /history/restore', { id: restored.value!.point }))}
        />
      )}
      <TwoPanes
        chosen={id !== undefined}
        detail={
          id === undefined ? (
            <NothingChosen>Choose a point to see what changed, and what a restore would do.</NothingChosen>
          ) : (
            <PointPane
              key={id}
              id={id}
              title={points.find(point => point.id === id)}
              scope={scope}
              path={path}
              done={result => {
                done(result)
                goTo('history')
              }}
            />
          )
        }
      >
        <div class="side-filters">
          <TextField label="File or folder" type="search" value={file} />
          <CheckField label="Include the points of every minute" value={intervals} />
        </div>
        <Loaded query={query}>
          {() =>
            points.length === 0 ? (
              <p class="side-note quiet">
                {file.value.trim()
                  ? 'It changed in no saved point.'
                  : 'Points are saved before and after turns, and before what can lose work. They appear here.'}
              </p>
            ) : (
              <>
                <VirtualList
                  label="Saved points"
                  items={points}
                  keyOf={point => point.id}
                  estimate={() => 60}
                  render={point => <PointRow point={point} current={point.id === id} />}
                />
                <MoreRow label="Show older points" of={older} />
              </>
            )
          }
        </Loaded>
      </TwoPanes>
    </>
  )
}
