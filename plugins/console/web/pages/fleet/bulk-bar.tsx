import { askDaemon } from '../../data/api.js'
import { fleet } from '../../data/live.js'
import { refetch } from '../../data/queries.js'
import { person } from '../../data/session/session.js'
import type { ActionState } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { FormButton } from '../../ui/dialog.js'
import { lazyView } from '../../ui/lazy.js'
import { throwFailures } from './archive.js'
import { useArchiving } from './archiving.js'
import { reaches } from '../registry.js'

const LandManyDialog = lazyView(async () => (await import('./land-many.js')).LandManyDialog)
const DeleteButton = lazyView(async () => (await import('./delete-button.js')).DeleteButton)

interface BulkBarProps {
  readonly ids: string[]
  readonly archived: boolean
  readonly action: ActionState
  readonly done: () => void
}

/** The actions for the selected conversations. */
export const BulkBar = ({ ids, archived, action, done }: BulkBarProps) => {
  const run = async (work: () => Promise<unknown>) => {
    await work()
    refetch('all')
    done()
  }
  const archiving = useArchiving(action, () => {
    refetch('all')
    done()
  })
  return (
    <div class="row bulk-bar" role="toolbar" aria-label="Selected conversations">
      <span class="grow">{ids.length} selected</span>
      {archived ? (
        <>
          <ActionButton action={action} work={() => run(() => askDaemon('POST /agents/unarchive', { ids }))}>
            Bring back
          </ActionButton>
          {reaches(person.value?.role, 'maintainer') && (
            <DeleteButton
              count={ids.length}
              work={() => run(async () => throwFailures((await askDaemon('POST /agents/purge', { ids })).failed))}
            />
          )}
        </>
      ) : (
        <>
          {reaches(person.value?.role, 'maintainer') && (
            <FormButton
              label="Land"
              form={close => <LandManyDialog ids={ids} close={close} done={() => refetch('all')} />}
            />
          )}
          <ActionButton action={action} work={() => run(() => askDaemon('POST /agents/seen', { ids }))}>
            Mark as read
          </ActionButton>
          <ActionButton
            action={action}
            work={() => archiving.archive(ids.flatMap(id => fleet.value.cards.get(id) ?? []))}
          >
            Archive
          </ActionButton>
          {archiving.question}
        </>
      )}
      <button class="button plainly" type="button" onClick={done}>
        Clear
      </button>
    </div>
  )
}
