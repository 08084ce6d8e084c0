import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { nameOfPath, pathInFolder } from '../../data/files/tree-rows.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import {
  dropUpload,
  droppedFiles,
  filesThere,
  uploadFiles,
  uploads,
  type UploadedFile,
} from '../../data/files/uploads.js'
import { useAction } from '../../ui/action.js'
import { useCommands } from '../../ui/commands.js'
import { FormButton } from '../../ui/dialog.js'
import { CheckField } from '../../ui/fields.js'
import { filesText, sizeTextOf, visibleName } from '../../ui/format.js'
import { FaultLine } from '../../ui/page.js'
import { reaches } from '../registry.js'
import { EntryActions, NewFileForm, NewFolderForm, ZipButton } from './file-actions.js'

const STATES = { sending: 'sending', waiting: 'waiting', done: 'done', failed: 'failed' } as const

/** Uploads and how far they are. */
const UploadList = () =>
  uploads.value.length === 0 ? null : (
    <section aria-label="Uploads">
      <h3>Uploads</h3>
      <ul class="items">
        {uploads.value.slice(0, 50).map(({ id, path, size, sent, state, fault }) => (
          <li key={id} class="item">
            <div class="item-main">
              <span class="mono">{visibleName(path)}</span>{' '}
              <span class="quiet small">
                {STATES[state]} · {sizeTextOf(sent)} of {sizeTextOf(size)}
              </span>
              <FaultLine fault={fault ?? ''} />
            </div>
            {state !== 'failed' && (
              <progress aria-label={`Uploading ${path}`} max={Math.max(1, size)} value={size === 0 ? 1 : sent} />
            )}
            {state !== 'done' && (
              <button class="button" type="button" onClick={() => dropUpload(id)}>
                {state === 'failed' ? 'Dismiss' : 'Stop'}
                <span class="visually-hidden"> {visibleName(path)}</span>
              </button>
            )}
          </li>
        ))}
      </ul>
      {uploads.value.length > 50 && (
        <p class="quiet small">{filesText(uploads.value.length - 50)} wait behind these.</p>
      )}
    </section>
  )

/** Files from the person's machine into a folder: chosen, or dropped onto it. */
const UploadBox = ({ folder }: { folder: string }) => {
  const over = useSignal(false)
  const replace = useSignal(false)
  const said = useSignal('')
  const action = useAction()
  const files = useRef<HTMLInputElement>(null)
  const folders = useRef<HTMLInputElement>(null)
  const begin = (found: () => Promise<UploadedFile[]>) =>
    void action.run(async () => {
      const all = (await found()).map(one => ({ ...one, path: pathInFolder(folder, one.path) }))
      const there = await filesThere(all)
      const left = all.filter(({ path }) => !there.has(path))
      said.value = there.size
        ? `${filesText(left.length)} to upload; ${filesText(there.size)} are there already.`
        : `${filesText(left.length)} to upload.`
      uploadFiles(left, replace.value)
    })
  const chosen = (input: HTMLInputElement) => {
    const list = [...(input.files ?? [])].map(file => ({ path: file.webkitRelativePath || file.name, file }))
    input.value = ''
    begin(() => Promise.resolve(list))
  }
  useCommands([
    { id: 'upload', label: 'Upload files …', group: 'Files', run: () => files.current?.click() },
    { id: 'upload folder', label: 'Upload a folder …', group: 'Files', run: () => folders.current?.click() },
  ])
  return (
    <section
      class={`drop-box stack${over.value ? ' over' : ''}`}
      aria-label="Upload"
      onDragOver={event => {
        event.preventDefault()
        over.value = true
      }}
      onDragLeave={() => {
        over.value = false
      }}
      onDrop={event => {
        event.preventDefault()
        over.value = false
        const { dataTransfer } = event
        if (dataTransfer) begin(() => droppedFiles(dataTransfer))
      }}
    >
      <p>Drop files and folders here, or choose them. An upload that was cut goes on when the same file comes again.</p>
      <div class="row">
        <button class="button" type="button" disabled={action.busy} onClick={() => files.current?.click()}>
          Upload files
        </button>
        <button class="button" type="button" disabled={action.busy} onClick={() => folders.current?.click()}>
          Upload a folder
        </button>
      </div>
      <CheckField label="Replace files that are there" value={replace} />
      <input
        ref={files}
        class="visually-hidden"
        type="file"
        multiple
        tabIndex={-1}
        aria-label="Files to upload"
        onChange={event => chosen(event.currentTarget)}
      />
      <input
        ref={folders}
        class="visually-hidden"
        type="file"
        tabIndex={-1}
        aria-label="Folder to upload"
        {...{ webkitdirectory: true }}
        onChange={event => chosen(event.currentTarget)}
      />
      <FaultLine fault={action.fault} />
      <p class="quiet small" role="status">
        {said.value}
      </p>
    </section>
  )
}

/** A folder: what can be put into it and done with it. */
export const FolderPane = ({ path }: { path: string }) => {
  const maintains = reaches(person.value?.role, 'maintainer')
  return (
    <section class="side-main scrolls" aria-label={path === '.' ? 'The workspace' : visibleName(path)}>
      <div class="pane-tools">
        <h2 class="mono">{path === '.' ? 'The workspace' : visibleName(nameOfPath(path))}</h2>
        <ZipButton path={path} />
        {maintains && (
          <>
            <FormButton label="New file" form={close => <NewFileForm folder={path} close={close} />} />
            <FormButton label="New folder" form={close => <NewFolderForm folder={path} close={close} />} />
            {path !== '.' && <EntryActions path={path} />}
            <a class="button" href={fragmentOf('files', 'trash')}>
              Trash
            </a>
          </>
        )}
      </div>
      <div class="stack pane-body">
        {maintains && <UploadBox folder={path} />}
        <UploadList />
      </div>
    </section>
  )
}
