import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { person } from '../../data/session/session.js'
import type { ActionState } from '../../ui/action.js'
import { reaches } from '../registry.js'

interface BulkBarProps {
  readonly ids: string[]
  readonly archived: boolean
  readonly action: ActionState
  readonly done: () => void
}

const failures = (list: readonly { readonly id: string; readonly message: string }[] | undefined): void => {
  if (list?.length) throw new Error(list.map(({ id, message }) => `${id}: ${message}`).join('; '))
}

/** Archives conversations, and lists those that could not be archived. */
export const archiveAll = async (ids: string[]): Promise<void> =>
  failures((await askDaemon('POST /agents/archive', { ids })).failed)

/** Lands several conversations, in the order of their selection, and names those that did not land. */
const landAll = async (ids: string[]): Promise<void> => {
  const { results } = await askDaemon('POST /agents/land', { ids, mode: 'check' })
  failures(
    results.flatMap(({ id, error, result }) => {
      if (error) return [{ id, message: error.message }]
      return result?.landed ? [] : [{ id, message: 'it has conflicts; open it to choose' }]
    }),
  )
}

/** The actions for the selected conversations. */
export const BulkBar = ({ ids, archived, action, done }: BulkBarProps) => {
  const run = (work: () => Promise<unknown>) =>
    void action.run(async () => {
      await work()
      refetch('all')
      done()
    })
  return (
    <div class="row bulk-bar" role="toolbar" aria-label="Selected conversations">
      <span class="grow">{ids.length} selected</span>
      {archived ? (
        <button
          class="button"
          type="button"
          disabled={action.busy}
          onClick={() => run(() => askDaemon('POST /agents/unarchive', { ids }))}
        >
          Bring back
        </button>
      ) : (
        <>
          {reaches(person.value?.role, 'maintainer') && (
            <button class="button" type="button" disabled={action.busy} onClick={() => run(() => landAll(ids))}>
              Land
            </button>
          )}
          <button
            class="button"
            type="button"
            disabled={action.busy}
            onClick={() => run(() => askDaemon('POST /agents/seen', { ids }))}
          >
            Mark as read
          </button>
          <button class="button" type="button" disabled={action.busy} onClick={() => run(() => archiveAll(ids))}>
            Archive
          </button>
        </>
      )}
      <button class="button plainly" type="button" onClick={done}>
        Clear
      </button>
    </div>
  )
}
