import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { FilesSeen, Restored, Snapshot, SnapshotChange } from '../../../../history/contract.js'
import { Refusal } from '../../../../../sdk/refusal.js'
import { askDaemon } from '../../data/api.js'
import { repoTitle } from '../../data/git-answers.js'
import type { QueryState } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { ComparedTexts } from '../../ui/code/compared-texts.js'
import { useCommands } from '../../ui/commands.js'
import { DialogForm } from '../../ui/dialog.js'
import { CheckField } from '../../ui/fields.js'
import { agoOf, countText, filesText, momentOf, visibleName, visibleText } from '../../ui/format.js'
import { VirtualList } from '../../ui/lists/list.js'
import { Loaded } from '../../ui/page.js'
import { MoreRow, useFurther } from '../../ui/lists/more.js'
import { useQuery } from '../../ui/query.js'
import { reaches } from '../registry.js'

interface PointPaneProps {
  readonly id: string
  readonly title: Snapshot | undefined
  readonly scope: string | undefined
  readonly path: string | undefined
  /** Called with what a restore did. */
  readonly done: (result: Restored) => void
}

const keyOf = ({ scope, path }: SnapshotChange): string => `${scope}\n${path}`

/** What a call takes at once. */
const MOST = 500
const AGAINST_NOW = {
  added: 'came since',
  deleted: 'is gone',
  modified: 'changed',
  'type-changed': 'another kind',
} as const

interface RestoreFormProps {
  readonly id: string
  /** The chosen files; empty: everything. */
  readonly picked: readonly SnapshotChange[]
  /** What is shown beside the form, which keeps the first answer. */
  readonly seen: QueryState<{ readonly now?: FilesSeen }>
  readonly close: () => void
  readonly done: (result: Restored) => void
}

/** Says what a restore would do, and does it. */
const RestorePointForm = ({ id, picked, seen, close, done }: RestoreFormProps) => {
  const expect = useRef<FilesSeen>(undefined)
  expect.current ??= seen.data?.now
  const force = useSignal(false)
  const offered = useSignal(false)
  const scopes = [...new Set(picked.map(({ scope }) => scope))]
  return (
    <DialogForm
      title={picked.length ? `Restore ${filesText(picked.length)}?` : 'Restore the whole workspace?'}
      verb="Restore"
      danger
      close={close}
      ready={scopes.length < 2 && picked.length <= MOST && expect.current !== undefined}
      work={async () => {
        try {
          const result = await askDaemon('POST /history/restore', {
            id,
            ...(picked.length > 0 && { scope: scopes[0]!, paths: picked.map(({ path }) => path) }),
            ...(force.value && { force: true }),
            ...(expect.current && { expect: expect.current }),
          })
          done(result)
          return 'stays'
        } catch (error) {
          offered.value ||= error instanceof Refusal && error.reason === 'conflict'
          throw error
        }
      }}
    >
      <p>
        Files go back to this point, and files made since are removed. Ignored files, branches and the index stay. A
        point is saved before, with which the restore is undone.
      </p>
      {!expect.current && <Loaded query={seen}>{() => null}</Loaded>}
      {scopes.length > 1 && <p class="notice warn">Choose files of one repository, or none to restore everything.</p>}
      {picked.length > MOST && <p class="notice warn">Choose at most {MOST} files.</p>}
      {offered.value && <CheckField label="Also while a turn works in the shared tree" value={force} />}
    </DialogForm>
  )
}

/** One saved point: what changed in it, what a restore would do, and one file of it. */
export const PointPane = ({ id, title, scope, path, done }: PointPaneProps) => {
  const now = useSignal(true)
  const picked = useSignal<ReadonlyMap<string, SnapshotChange>>(new Map())
  const restoring = useSignal(false)
  const against = now.value ? { against: 'now' } : {}
  const key = `${id} ${now.value}`
  const query = useQuery(`history diff ${key}`, now.value ? ['files', 'history'] : ['history'], () =>
    askDaemon('GET /history/diff', { id, ...against }),
  )
  const further = useFurther(key, query.data?.after, async from => {
    const page = await askDaemon('GET /history/diff', { id, ...against, after: from })
    return { rows: page.changes, next: page.after }
  })
  const changes = [...(query.data?.changes ?? []), ...further.rows]
  const maintains = reaches(person.value?.role, 'maintainer')
  const toggle = (change: SnapshotChange) => {
    const next = new Map(picked.value)
    if (!next.delete(keyOf(change))) next.set(keyOf(change), change)
    picked.value = next
  }
  const ask = () => {
    // What a restore changes is looked at before, also where the other comparison is shown.
    now.value = true
    restoring.value = true
  }
  useCommands(
    maintains ? [{ id: 'restore', label: 'Restore this point …', group: 'History', keys: 'shift+r', run: ask }] : [],
  )
  return (
    <section class="side-main" aria-label={title ? visibleText(title.label ?? title.trigger) : 'Saved point'}>
      <div class="pane-tools">
        <h2 dir="auto">{title ? visibleText(title.label ?? momentOf(title.at)) : visibleName(id)}</h2>
        <div class="row" role="group" aria-label="Compared with">
          <button
            class="button"
            type="button"
            aria-pressed={now.value}
            onClick={() => {
              now.value = true
            }}
          >
            What a restore changes
          </button>
          <button
            class="button"
            type="button"
            aria-pressed={!now.value}
            onClick={() => {
              now.value = false
            }}
          >
            What changed in it
          </button>
        </div>
        {maintains && (
          <button class="button danger" type="button" onClick={ask}>
            {picked.value.size ? `Restore ${filesText(picked.value.size)}` : 'Restore'}
          </button>
        )}
      </div>
      {title && (
        <p class="side-note quiet small">
          {momentOf(title.at)} ({agoOf(title.at)})
          {title.conversationId && (
            <>
              {' '}
              · turn of <a href={fragmentOf('c', title.conversationId)}>{visibleName(title.conversationId)}</a>
            </>
          )}
          {title.skipped !== undefined && ` · without ${countText(title.skipped)} files over 50 MiB`}
          {title.partial && ` · not saved: ${title.partial.map(repoTitle).map(visibleName).join(', ')}`}
        </p>
      )}
      <Loaded query={query}>
        {() =>
          changes.length === 0 ? (
            <p class="empty quiet">
              {now.value ? 'The workspace is as it was at this point.' : 'Nothing changed that you can see.'}
            </p>
          ) : (
            <div class={`point-files${path === undefined ? '' : ' with-file'}`}>
              <VirtualList
                label="Files that differ"
                items={changes}
                keyOf={keyOf}
                estimate={() => 36}
                render={change => (
                  <div class={`file-row${change.path === path && change.scope === scope ? ' current' : ''}`}>
                    {maintains && now.value && (
                      <label class="fleet-pick">
                        <input
                          type="checkbox"
                          checked={picked.value.has(keyOf(change))}
                          onChange={() => toggle(change)}
                        />
                        <span class="visually-hidden">Restore {visibleName(change.path)}</span>
                      </label>
                    )}
                    <a
                      class="file-link"
                      href={fragmentOf('history', id, change.scope, change.path)}
                      data-row={keyOf(change)}
                    >
                      <span class="mono file-name" dir="ltr">
                        {change.scope !== 'root' && `${visibleName(change.scope)}/`}
                        {visibleName(change.path)}
                      </span>
                      <span class="tag">
                        {now.value ? (AGAINST_NOW[change.status] ?? change.status) : change.status}
                      </span>
                    </a>
                  </div>
                )}
              />
              <MoreRow label="Show more files" of={further} />
              {scope !== undefined && path !== undefined && (
                <PointFile
                  key={`${key} ${scope} ${path}`}
                  {...{ id, scope, path, now: now.value }}
                  status={changes.find(one => one.scope === scope && one.path === path)?.status ?? 'modified'}
                />
              )}
            </div>
          )
        }
      </Loaded>
      {restoring.value && (
        <RestorePointForm
          id={id}
          picked={[...picked.value.values()]}
          done={done}
          seen={query}
          close={() => {
            restoring.value = false
          }}
        />
      )}
    </section>
  )
}

interface PointFileProps {
  readonly id: string
  readonly scope: string
  readonly path: string
  readonly now: boolean
  readonly status: string
}

const PointFile = ({ id, scope, path, now, status }: PointFileProps) => {
  const against = now ? { against: 'now' } : {}
  const { data, error } = useQuery(`history file ${id} ${scope} ${path} ${now}`, now ? ['files'] : [], () =>
    askDaemon('GET /history/file-diff', { id, scope, path, ...against }),
  )
  return (
    <ComparedTexts
      path={path}
      sides={data}
      error={error}
      source={{ source: 'checkpoint', snapshot: id, scope, path, ...against, status }}
    />
  )
}
