import { useSignal } from '@preact/signals'
import type { TrashItem } from '../../../../workspace/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { goTo } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { DialogForm, FormButton } from '../../ui/dialog.js'
import { TextField } from '../../ui/fields.js'
import { agoOf, filesText, momentOf, sizeTextOf, visibleName } from '../../ui/format.js'
import { Item, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches } from '../registry.js'

const PutBackForm = ({ item, close }: { item: TrashItem; close: () => void }) => {
  const to = useSignal(item.path)
  return (
    <DialogForm
      title={`Put ${visibleName(item.path)} back?`}
      verb="Put back"
      close={close}
      work={async () => {
        const { path } = await askDaemon('POST /workspace/restore', { id: item.id, to: to.value.trim() })
        refetch(new Set(['files']))
        goTo('files', 'open', path)
        return 'stays'
      }}
    >
      <TextField label="Path in the workspace" required value={to} hint="Folders that are missing are made." />
    </DialogForm>
  )
}

/** What was deleted and can come back. */
export const TrashPane = () => {
  const before = useSignal<readonly number[]>([])
  const at = before.value.at(-1)
  const page = useQuery(`trash ${at ?? ''}`, ['files'], () =>
    askDaemon('GET /workspace/trash', { limit: 100, ...(at !== undefined && { before: at }) }),
  )
  const maintains = reaches(person.value?.role, 'maintainer')
  return (
    <section class="side-main scrolls" aria-label="Trash">
      <div class="pane-tools">
        <h2>Trash</h2>
      </div>
      <div class="pane-body stack">
        <Loaded query={page}>
          {({ items, bytes, before: next }) =>
            items.length === 0 && at === undefined ? (
              <p class="quiet">What is deleted appears here for 30 days, to be put back.</p>
            ) : (
              <>
                <p class="quiet small">The trash holds {sizeTextOf(bytes)}.</p>
                <ul class="items">
                  {items.map(item => (
                    <Item
                      key={item.id}
                      title={<span class="mono">{visibleName(item.path)}</span>}
                      detail={
                        <>
                          deleted <span title={momentOf(item.deletedAt)}>{agoOf(item.deletedAt)}</span> by{' '}
                          {visibleName(item.by)} · {item.type === 'dir' && `${filesText(item.files)} · `}
                          {sizeTextOf(item.size)} · kept until {momentOf(item.expiresAt)}
                        </>
                      }
                    >
                      {maintains && (
                        <FormButton
                          label="Put back"
                          about={visibleName(item.path)}
                          form={close => <PutBackForm item={item} close={close} />}
                        />
                      )}
                    </Item>
                  ))}
                </ul>
                <div class="row">
                  {at !== undefined && (
                    <button
                      class="button"
                      type="button"
                      onClick={() => {
                        before.value = before.value.slice(0, -1)
                      }}
                    >
                      Newer
                    </button>
                  )}
                  {next !== undefined && (
                    <button
                      class="button"
                      type="button"
                      onClick={() => {
                        before.value = [...before.value, next]
                      }}
                    >
                      Older
                    </button>
                  )}
                </div>
              </>
            )
          }
        </Loaded>
      </div>
    </section>
  )
}
