import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Refusal } from '../../../../../sdk/refusal.js'
import { askDaemon, faultSentence } from '../../data/api.js'
import { onPaths } from '../../data/files/file-changes.js'
import { fileKindOf, askWhetherThere, openTextFile, readsAsDocument } from '../../data/files/typed-files.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { SideViews } from '../../ui/extensions/side-views.js'
import { ViewerLinks } from '../../ui/extensions/viewer-links.js'
import { visibleName } from '../../ui/format.js'
import { FaultLine, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { useRead } from '../../ui/read.js'
import { Toggle } from '../../ui/toggle.js'
import { reaches } from '../registry.js'
import { downloadFile, EntryActions } from './file-actions.js'
import { BinaryView, DocumentView, LargeText, MediaView, PictureView } from './other-files.js'
import { TextFile } from './text-file.js'
import { CopyButton } from '../../ui/copy.js'

/** A number that increases with every change of a file. */
const useFileVersion = (path: string) => {
  const version = useSignal(0)
  useEffect(
    () =>
      onPaths(paths => {
        if (!paths || paths.some(one => one === path || path.startsWith(`${one}/`))) version.value += 1
      }),
    [path],
  )
  return version
}

/** There is no such file: what a path from elsewhere may have meant. */
const Missing = ({ path }: { path: string }) => {
  const { data } = useQuery(`resolve ${path}`, ['files'], () =>
    askDaemon('GET /workspace/resolve', { path: path.slice(-512) }),
  )
  return (
    <p class="empty quiet">
      There is no such file.{' '}
      {data?.path !== undefined && (
        <>
          Did you mean <a href={fragmentOf('files', 'open', data.path)}>{visibleName(data.path)}</a>?
        </>
      )}
    </p>
  )
}

const Content = ({ path, line, document }: { path: string; line: number | undefined; document: boolean }) => {
  const version = useFileVersion(path)
  const kind = fileKindOf(path)
  const mayWrite = reaches(person.value?.role, 'maintainer')
  const again = useSignal(0)
  const asText = kind === 'text' || kind === 'archive'
  const opened = useRead(`${version.value} ${again.value}`, () => (asText ? openTextFile(path) : askWhetherThere(path)))
  const shown = opened.data
  const { error } = opened
  // What was read before is shown no longer to a person who may not read it any more.
  if (error instanceof Refusal && (error.reason === 'forbidden' || error.reason === 'not-found'))
    return <p class="notice bad">{faultSentence(error)}</p>
  if (!shown) return <Loaded query={opened}>{() => null}</Loaded>
  if (shown.kind === 'missing') return <Missing path={path} />
  if (kind === 'picture') return <PictureView path={path} version={version.value} />
  if (kind === 'sound' || kind === 'film') return <MediaView path={path} film={kind === 'film'} version={0} />
  if (shown.kind === 'there' || document) return <DocumentView path={path} version={version.value} />
  if (shown.kind === 'large') return <LargeText path={path} size={shown.size} version={version.value} />
  if (shown.kind !== 'text') return <BinaryView path={path} size={shown.size} version={version.value} />
  return (
    <TextFile
      path={path}
      disk={shown}
      line={line}
      mayWrite={mayWrite}
      reread={() => {
        again.value += 1
      }}
    />
  )
}

/** One file: shown by its kind, written, downloaded, moved, deleted. */
export const WorkspaceFilePane = ({ path, line }: { path: string; line: number | undefined }) => {
  const action = useAction()
  const document = useSignal(false)
  const maintains = reaches(person.value?.role, 'maintainer')
  return (
    <section class="side-main" aria-label={visibleName(path)}>
      <div class="pane-tools">
        <div class="row pane-name">
          <h2 class="mono">{visibleName(path)}</h2>
          <CopyButton text={path} what="the path" />
        </div>
        {readsAsDocument(path) && <Toggle label="As a document" on={document} />}
        <ViewerLinks path={path} />
        <ActionButton action={action} work={() => downloadFile(path)}>
          Download
        </ActionButton>
        {maintains && <EntryActions path={path} archive={fileKindOf(path) === 'archive'} />}
      </div>
      <FaultLine fault={action.fault} />
      <Content key={path} path={path} line={line} document={document.value} />
      <SideViews beside="file" surface={{ path }} />
    </section>
  )
}
