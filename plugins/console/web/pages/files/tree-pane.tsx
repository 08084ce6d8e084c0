import { useEffect } from 'preact/hooks'
import type { FileTree } from '../../data/files/file-tree.js'
import { nameOfPath, type TreeRow } from '../../data/files/tree-rows.js'
import { fragmentOf } from '../../data/route.js'
import { countText, sizeTextOf, visibleName } from '../../ui/format.js'
import { VirtualList } from '../../ui/lists/list.js'
import { Bones } from '../../ui/page.js'

interface RowProps {
  readonly tree: FileTree
  readonly row: TreeRow
  readonly current: string | undefined
}

const keyOf = (row: TreeRow): string => (row.kind === 'entry' ? row.entry.path : `${row.kind} ${row.path}`)
const estimate = (): number => 32

const More = ({ tree, path, hidden }: { tree: FileTree; path: string; hidden: number }) => {
  // The row is rendered while it is in view: then the next entries are read.
  useEffect(() => tree.more(path))
  return <span class="tree-name quiet small">{countText(hidden)} more, reading …</span>
}

const NOTES = { reading: 'reading …', empty: 'empty' } as const

/** Indents what lies deeper; beyond some levels names need the room more. */
const levelClass = (level: number): string => `tree-row level-${Math.min(level, 12)}`

const Row = ({ tree, row, current }: RowProps) => {
  if (row.kind !== 'entry')
    return (
      <div class={levelClass(row.level)}>
        {row.kind === 'more' ? (
          <More tree={tree} path={row.path} hidden={row.hidden} />
        ) : (
          <span class={`tree-name small ${row.kind === 'fault' ? 'minus' : 'quiet'}`}>
            {row.kind === 'fault' ? row.fault : NOTES[row.kind]}
          </span>
        )}
      </div>
    )
  const { entry, open, level } = row
  const { path, type, ignored, closed, lossy, link, size } = entry
  const name = visibleName(entry.name)
  const shut = closed || lossy || link?.state !== undefined
  const here = path === current
  const facts = (
    <span class="quiet small">
      {link && ` → ${visibleName(link.to)}${link.state ? ` (${link.state})` : ''}`}
      {closed && ' belongs to the sandbox'}
      {lossy && ' name is not UTF-8'}
    </span>
  )
  const look = `tree-name${ignored ? ' quiet' : ''}`
  return (
    <div class={`${levelClass(level)}${here ? ' current' : ''}`}>
      {shut ? (
        <span class={look} tabIndex={-1} data-row={path}>
          <span class="tree-mark" aria-hidden="true" />
          {name} {facts}
        </span>
      ) : type === 'dir' ? (
        <>
          <button
            class={`${look} tree-button`}
            type="button"
            data-row={path}
            aria-expanded={open}
            onClick={() => tree.toggle(path)}
            onKeyDown={event => {
              if (event.key === 'ArrowRight') tree.toggle(path, true)
              if (event.key === 'ArrowLeft') tree.toggle(path, false)
            }}
          >
            <span class="tree-mark" aria-hidden="true">
              {open ? '▾' : '▸'}
            </span>
            <span dir="auto">{name}</span> {facts}
          </button>
          <a class="tree-more" href={fragmentOf('files', 'open', path)} aria-label={`Folder ${name}`}>
            ⋯
          </a>
        </>
      ) : (
        <a
          class={look}
          href={fragmentOf('files', 'open', path)}
          data-row={path}
          aria-current={here ? 'true' : undefined}
          title={size === undefined ? undefined : sizeTextOf(size)}
        >
          <span class="tree-mark" aria-hidden="true" />
          <span dir="auto">{name}</span> {facts}
        </a>
      )}
    </div>
  )
}

/** The files of the workspace, folder by folder. */
export const TreePane = ({ tree, current }: { tree: FileTree; current: string | undefined }) => {
  const rows = tree.rows.value
  if (tree.fault.value) return <p class="notice bad">{tree.fault.value}</p>
  if (rows.length === 0) return <Bones />
  return (
    <>
      {tree.polling.value && (
        <p class="notice side-note small">
          The system cannot watch more folders: changes made elsewhere show after 30 s.
        </p>
      )}
      <VirtualList
        label={`Files of ${visibleName(nameOfPath(tree.root.value) || 'the workspace')}`}
        class="tree"
        items={rows}
        keyOf={keyOf}
        estimate={estimate}
        render={row => <Row tree={tree} row={row} current={current} />}
      />
    </>
  )
}
