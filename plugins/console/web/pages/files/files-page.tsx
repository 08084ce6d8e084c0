import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { SearchMode } from '../../../../workspace/contract.js'
import { FileTree } from '../../data/files/file-tree.js'
import { fragmentOf, goTo } from '../../data/route.js'
import { folderOfPath } from '../../data/files/tree-rows.js'
import { person } from '../../data/session/session.js'
import { useCommands } from '../../ui/commands.js'
import { Icon } from '../../ui/icons.js'
import { Loaded } from '../../ui/page.js'
import { useRead } from '../../ui/read.js'
import { focusSoon } from '../../ui/lists/rows.js'
import { SearchField } from '../../ui/search-field.js'
import { isWide } from '../../ui/wide.js'
import { reaches, type PageProps } from '../registry.js'
import { NewFileForm, NewFolderForm } from './file-actions.js'
import { WorkspaceFilePane } from './file-pane.js'
import { FolderPane } from './folder-pane.js'
import { SearchPane } from './search-pane.js'
import { TrashPane } from './trash-pane.js'
import { TreePane } from './tree-pane.js'
import { TwoPanes } from '../../ui/two-panes.js'

interface OpenedPlaceProps {
  readonly tree: FileTree
  readonly path: string
  readonly line: number | undefined
}

/** A file or a folder, whichever is at the path. */
const OpenedPlace = ({ tree, path, line }: OpenedPlaceProps) => {
  const found = useRead(path, async () => {
    const kind = await tree.kindOf(path)
    if (kind) tree.reveal(path)
    return kind ?? 'missing'
  })
  return found.data === undefined ? (
    <div class="side-main">
      <Loaded query={found}>{() => null}</Loaded>
    </div>
  ) : found.data === 'dir' ? (
    <FolderPane path={path} />
  ) : (
    <WorkspaceFilePane path={path} line={line} />
  )
}

/** The files of the workspace: found, read, written, and changed. */
export const FilesPage = ({ rest: [part, path, line] }: PageProps) => {
  const tree = useMemo(() => new FileTree(), [])
  const query = useSignal('')
  const mode = useSignal<SearchMode>('q')
  const making = useSignal<'file' | 'folder' | undefined>(undefined)
  const chosen = part === 'open' || part === 'trash'
  const at = part === 'open' ? path : undefined
  const maintains = reaches(person.value?.role, 'maintainer')
  useEffect(() => tree.watch(), [])
  const searchFor = (next: SearchMode) => {
    mode.value = next
    if (chosen && !isWide()) goTo('files')
    focusSoon('search')
  }
  useCommands([
    { id: 'search', label: 'Search files', group: 'Files', keys: '/', run: () => searchFor('q') },
    { id: 'find file', label: 'Find a file by its name', group: 'Files', keys: 'mod+p', run: () => searchFor('files') },
    ...(maintains
      ? (
          [
            ['file', 'New file …'],
            ['folder', 'New folder …'],
          ] as const
        ).map(([kind, label]) => ({
          ...{ id: `new ${kind}`, label, group: 'Files' },
          run: () => {
            making.value = kind
          },
        }))
      : []),
    { id: 'trash', label: 'Trash', group: 'Files', run: () => goTo('files', 'trash') },
  ])
  const folder = at !== undefined && tree.isOpen(at) ? at : folderOfPath(at ?? '')
  const close = () => {
    making.value = undefined
  }
  return (
    <>
      <header class="page-head">
        {chosen && (
          <a class="button plainly narrow-only" href={fragmentOf('files')} aria-label="Back to the files">
            <Icon name="back" />
          </a>
        )}
        <h1 class="grow">Files</h1>
        {!chosen && (
          <a class="button narrow-only" href={fragmentOf('files', 'open', '.')}>
            Workspace …
          </a>
        )}
      </header>
      <TwoPanes
        chosen={chosen}
        detail={
          part === 'trash' ? (
            <TrashPane />
          ) : at !== undefined ? (
            <OpenedPlace key={at} tree={tree} path={at} line={line && /^\d+$/.test(line) ? Number(line) : undefined} />
          ) : (
            <div class="wide-only root-pane">
              <FolderPane path="." />
            </div>
          )
        }
      >
        <div class="side-search">
          <SearchField main label="Search files" placeholder="Search words, names, symbols" value={query} />
        </div>
        {query.value.trim() ? <SearchPane query={query.value} mode={mode} /> : <TreePane tree={tree} current={at} />}
      </TwoPanes>
      {making.value === 'file' && <NewFileForm folder={folder} close={close} />}
      {making.value === 'folder' && <NewFolderForm folder={folder} close={close} />}
    </>
  )
}
