import { useSignal } from '@preact/signals'
import { askDaemon } from '../../data/api.js'
import { keepDraft } from '../../data/drafts.js'
import { folderOfPath, nameOfPath, pathInFolder } from '../../data/files/tree-rows.js'
import { goTo } from '../../data/route.js'
import { saveFrom } from '../../data/files/save.js'
import { served } from '../../data/live.js'
import { DialogForm, FormButton } from '../../ui/dialog.js'
import { CheckField, TextField } from '../../ui/fields.js'
import { filesText, sizeTextOf, visibleName } from '../../ui/format.js'
import { Loaded } from '../../ui/page.js'
import { PublishButton } from '../outbox/publish-form.js'
import { useSeenEntry } from './seen-entry.js'

/** Saves files and folders of the workspace as one ZIP. */
export const downloadZip = async (paths: string[], includeIgnored = false): Promise<void> => {
  const { ticket, filename } = await askDaemon('POST /workspace/download-ticket', {
    paths,
    ...(includeIgnored && { includeIgnored }),
  })
  saveFrom(`/workspace/download?${new URLSearchParams({ ticket })}`, filename)
}

/** Saves one file of the workspace. */
export const downloadFile = async (path: string): Promise<void> => {
  const { ticket } = await askDaemon('POST /workspace/media-ticket', { path })
  saveFrom(`/workspace/media?${new URLSearchParams({ ticket, download: '1' })}`, nameOfPath(path))
}

interface PlaceForm {
  readonly close: () => void
}

/** Asks for a name and makes an empty file. */
export const NewFileForm = ({ folder, close }: PlaceForm & { folder: string }) => {
  const name = useSignal('')
  return (
    <DialogForm
      title={`New file in ${folder === '.' ? 'the workspace' : visibleName(folder)}`}
      verb="Create"
      close={close}
      ready={name.value.trim() !== ''}
      work={async () => {
        const path = pathInFolder(folder, name.value.trim())
        await askDaemon('PUT /workspace/file', { path, content: '', baseHash: 'absent', createParents: true })
        goTo('files', 'open', path)
        // Another address closes the dialog.
        return 'stays'
      }}
    >
      <TextField label="Name" required value={name} hint="Folders that are missing are made: notes/today.md" />
    </DialogForm>
  )
}

/** Asks for a name and makes a folder. */
export const NewFolderForm = ({ folder, close }: PlaceForm & { folder: string }) => {
  const name = useSignal('')
  return (
    <DialogForm
      title={`New folder in ${folder === '.' ? 'the workspace' : visibleName(folder)}`}
      verb="Create"
      close={close}
      ready={name.value.trim() !== ''}
      work={async () => {
        const path = pathInFolder(folder, name.value.trim())
        await askDaemon('POST /workspace/dir', { path })
        goTo('files', 'open', path)
        return 'stays'
      }}
    >
      <TextField label="Name" required value={name} />
    </DialogForm>
  )
}

const MoveForm = ({ path, copy, close }: PlaceForm & { path: string; copy: boolean }) => {
  const to = useSignal(copy ? pathInFolder(folderOfPath(path), `copy-of-${nameOfPath(path)}`) : path)
  const overwrite = useSignal(false)
  const place = to.value.trim()
  const { seen, onSeen } = useSeenEntry(overwrite.value && place ? place : undefined)
  return (
    <DialogForm
      title={`${copy ? 'Copy' : 'Rename or move'} ${visibleName(nameOfPath(path))}`}
      verb={copy ? 'Copy' : 'Move'}
      close={close}
      ready={place !== '' && to.value !== path && (!overwrite.value || seen.data?.path === place)}
      work={async () => {
        const asked = { from: path, to: place, ...(overwrite.value && { overwrite: true }) }
        const call = copy ? 'POST /workspace/copy' : 'POST /workspace/move'
        await onSeen(expect => askDaemon(call, { ...asked, ...expect }))
        goTo('files', 'open', place)
        return 'stays'
      }}
    >
      <TextField label="New path in the workspace" required value={to} hint="Folders that are missing are made." />
      <CheckField label="Replace a file that is there; it goes to the trash" value={overwrite} />
      {overwrite.value && <Loaded query={seen}>{() => null}</Loaded>}
    </DialogForm>
  )
}

const ZipForm = ({ path, close }: PlaceForm & { path: string }) => {
  const ignored = useSignal(false)
  return (
    <DialogForm
      title={`Download ${path === '.' ? 'the workspace' : visibleName(path)}`}
      verb="Download"
      close={close}
      work={async () => downloadZip(path === '.' ? await topPaths() : [path], ignored.value)}
    >
      <p>One ZIP file, made while it is sent.</p>
      <CheckField label="With what git ignores, such as installed packages" value={ignored} />
    </DialogForm>
  )
}

/** A ZIP is made of named entries: those of the root stand for all of it. */
const topPaths = async (): Promise<string[]> => {
  const { entries } = await askDaemon('GET /workspace/children', { path: '.' })
  const open = entries.filter(({ closed, lossy, link }) => !closed && !lossy && !link?.state)
  if (open.length > 200) throw new Error('the root has more than 200 entries: download single folders')
  return open.map(({ path }) => path)
}

const UnpackForm = ({ path, close }: PlaceForm & { path: string }) => {
  const to = useSignal('')
  const remove = useSignal(false)
  return (
    <DialogForm
      title={`Unpack ${visibleName(nameOfPath(path))}`}
      verb="Unpack"
      close={close}
      work={async () => {
        const done = await askDaemon('POST /workspace/unpack', {
          ...{ path, ...(to.value.trim() && { to: to.value.trim() }) },
          ...(remove.value && { removeArchive: true }),
        })
        goTo('files', 'open', done.to)
        return 'stays'
      }}
    >
      <TextField label="Into the folder" value={to} placeholder="Beside the archive, under its name" />
      <CheckField label="Delete the archive afterwards" value={remove} />
    </DialogForm>
  )
}

const DeleteForm = ({ path, close }: PlaceForm & { path: string }) => {
  const permanent = useSignal(false)
  const { seen, onSeen } = useSeenEntry(path)
  return (
    <DialogForm
      title={`Delete ${visibleName(nameOfPath(path))}?`}
      verb="Delete"
      danger
      close={close}
      ready={seen.data !== undefined}
      work={async () => {
        await onSeen(expect =>
          askDaemon('DELETE /workspace/entry', { path, ...expect, ...(permanent.value && { permanent: true }) }),
        )
        keepDraft(`file:${path}`, '')
        goTo('files', 'open', folderOfPath(path))
      }}
    >
      <Loaded query={seen}>
        {entry => (entry ? <p>{`${filesText(entry.files)}, ${sizeTextOf(entry.bytes)}.`}</p> : null)}
      </Loaded>
      <p>
        {permanent.value
          ? 'It is gone for good.'
          : 'It goes to the trash, with all below it, and can come back for 30 days.'}
      </p>
      <CheckField label="Delete for good, without the trash" value={permanent} />
    </DialogForm>
  )
}

/** Deletes a file or folder after a question; it can come back from the trash. */
const DeleteButton = ({ path }: { path: string }) => (
  <FormButton
    label="Delete"
    about={visibleName(nameOfPath(path))}
    form={close => <DeleteForm path={path} close={close} />}
  />
)

/** What a maintainer can do with a file or folder. */
export const EntryActions = ({ path, archive = false }: { path: string; archive?: boolean }) => {
  const name = visibleName(nameOfPath(path))
  return (
    <>
      {archive && <FormButton label="Unpack" about={name} form={close => <UnpackForm path={path} close={close} />} />}
      <FormButton label="Move" about={name} form={close => <MoveForm path={path} copy={false} close={close} />} />
      <FormButton label="Copy" about={name} form={close => <MoveForm path={path} copy close={close} />} />
      {served.value.has('public.publish') && <PublishButton path={path} />}
      <DeleteButton path={path} />
    </>
  )
}

/** Downloads a folder as ZIP. */
export const ZipButton = ({ path }: { path: string }) => (
  <FormButton
    label="Download"
    about={path === '.' ? 'the workspace' : visibleName(path)}
    form={close => <ZipForm path={path} close={close} />}
  />
)
