import type { PublicFile } from '../../../../outbox/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { person } from '../../data/session/session.js'
import { AddressLink } from '../../ui/address-link.js'
import { AskButton, DialogForm, FormButton } from '../../ui/dialog.js'
import { agoOf, countText, filesText, momentOf, sizeTextOf, visibleName } from '../../ui/format.js'
import { MoreRow, usePages } from '../../ui/lists/more.js'
import { Item, Loaded, PageFrame, type ToneWord } from '../../ui/page.js'
import { useSeenEntry } from '../files/seen-entry.js'
import { reaches } from '../registry.js'
import { BLOCKED } from './blocked.js'
import { PublishForm } from './publish-form.js'

const changed = () => refetch(new Set(['outbox']))

const stateOf = ({ reason, url }: PublicFile): ToneWord => {
  if (reason) return ['warn', 'Not served']
  return url === undefined ? ['', 'Switched off'] : ['good', 'Public']
}

const openedText = (opened: number): string => (opened === 1 ? 'opened once' : `opened ${countText(opened)} times`)

const FileRow = ({ file }: { file: PublicFile }) => {
  const { path, size, url, reason, source, publishedBy, publishedAt, expiresAt, opened = 0 } = file
  const isPublished = publishedAt !== undefined
  return (
    <Item
      title={visibleName(path)}
      state={stateOf(file)}
      detail={
        <>
          {reason && <div>{BLOCKED[reason]}</div>}
          {url !== undefined && (
            <div>
              <AddressLink address={url} label={url} />
            </div>
          )}
          {source !== undefined && <div dir="auto">from {visibleName(source)}</div>}
          {publishedBy !== undefined && (
            <div>
              by {visibleName(publishedBy)} {publishedAt !== undefined && agoOf(publishedAt)}
              {expiresAt !== undefined && `, until ${momentOf(expiresAt)}`}
            </div>
          )}
          <div>
            {sizeTextOf(size)}
            {publishedAt !== undefined && `, ${openedText(opened)}`}
          </div>
        </>
      }
    >
      {reaches(person.value?.role, 'maintainer') && (
        <FormButton
          label={isPublished ? 'Withdraw' : 'Delete'}
          about={visibleName(path)}
          form={close => (isPublished ? <WithdrawForm {...{ path, close }} /> : <DeleteForm {...{ path, close }} />)}
        />
      )}
    </Item>
  )
}

interface EntryForm {
  readonly path: string
  readonly close: () => void
}

const WithdrawForm = ({ path, close }: EntryForm) => (
  <DialogForm
    title={`Withdraw ${visibleName(path)}?`}
    verb="Withdraw"
    danger
    close={close}
    work={async () => {
      await askDaemon('POST /public/unpublish', { path })
      changed()
    }}
  >
    <p>Its address answers nobody from then on. The file that it was copied from stays.</p>
  </DialogForm>
)

const DeleteForm = ({ path, close }: EntryForm) => {
  const place = `public/${path}`
  const { seen, onSeen } = useSeenEntry(place)
  return (
    <DialogForm
      title={`Delete public/${visibleName(path)}?`}
      verb="Delete"
      danger
      close={close}
      ready={seen.data !== undefined}
      work={async () => {
        await onSeen(expect => askDaemon('DELETE /workspace/entry', { path: place, ...expect }))
        changed()
      }}
    >
      <p>The file was not put there by the sandbox. It goes into the trash of the workspace.</p>
      <Loaded query={seen}>{() => null}</Loaded>
    </DialogForm>
  )
}

const RotateButton = () => (
  <AskButton
    label="New address"
    about="for the outbox"
    title="Give the outbox a new address?"
    work={async () => {
      await askDaemon('POST /public/rotate')
      changed()
    }}
  >
    <p>Every address that was handed out stops to work. The files stay, under new addresses.</p>
  </AskButton>
)

const REACH = {
  public: 'Everybody who knows an address can read the file behind it, without signing in.',
  machine: 'The addresses answer on this machine alone.',
  none: 'The deployment has switched public files off.',
} as const

/** The files that are published. */
export const OutboxPage = () => {
  const { query, older, rows } = usePages('outbox', ['outbox'], async (after: string | undefined) => {
    const { files, ...rest } = await askDaemon('GET /public', { ...(after !== undefined && { after }) })
    return { ...rest, rows: files, next: rest.next }
  })
  const maintains = reaches(person.value?.role, 'maintainer')
  return (
    <PageFrame
      title="Outbox"
      tools={
        maintains && (
          <FormButton label="Publish" about="a file or folder" primary form={close => <PublishForm close={close} />} />
        )
      }
    >
      <Loaded query={query}>
        {({ totalBytes, reach }) => (
          <>
            <p class="quiet">{REACH[reach]}</p>
            {rows.length === 0 ? (
              <p class="quiet">Files that are published from the workspace appear here.</p>
            ) : (
              <section aria-label="Files">
                <p class="quiet">
                  {filesText(rows.length)}
                  {older.more && ' of more'}, {sizeTextOf(totalBytes)} in all
                </p>
                <ul class="items">
                  {rows.map(file => (
                    <FileRow key={file.path} file={file} />
                  ))}
                </ul>
                <MoreRow label="More files" of={older} />
              </section>
            )}
            {maintains && reach !== 'none' && rows.length > 0 && <RotateButton />}
          </>
        )}
      </Loaded>
    </PageFrame>
  )
}
