import { useSignal, type Signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { SearchGroup, SearchHit, SearchMode, SearchResult } from '../../../../workspace/contract.js'
import { askDaemon, faultSentence } from '../../data/api.js'
import { hello } from '../../data/live.js'
import { fragmentOf } from '../../data/route.js'
import { CheckField, ChoiceField, TextField, useSettled } from '../../ui/fields.js'
import { countText, visibleName, visibleText } from '../../ui/format.js'
import { VirtualList } from '../../ui/lists/list.js'
import { Bones } from '../../ui/page.js'

const MODES = [
  ['q', 'Anything'],
  ['find', 'Text or regular expression'],
  ['files', 'File names'],
  ['def', 'Definitions'],
  ['refs', 'Uses'],
  ['sym', 'Symbols'],
  ['ast', 'Code of a shape'],
] as const satisfies readonly (readonly [SearchMode, string])[]

type Found =
  | { readonly kind: 'file'; readonly group: SearchGroup }
  | { readonly kind: 'hit'; readonly path: string; readonly hit: SearchHit; readonly at: number }

const rowsOfGroups = (groups: readonly SearchGroup[], mode: SearchMode): Found[] =>
  groups.flatMap((group): Found[] => [
    { kind: 'file', group },
    // In names the path says all.
    ...(mode === 'files' ? [] : group.hits.map((hit, at): Found => ({ kind: 'hit', path: group.path, hit, at }))),
  ])

const foundKey = (found: Found): string =>
  found.kind === 'file' ? found.group.path : `${found.path} ${found.hit.line} ${found.at}`

const Marked = ({ text, spans }: Pick<SearchHit, 'text' | 'spans'>) => {
  let at = 0
  return (
    <>
      {spans.map(({ start, end }) => {
        const before = text.slice(at, start)
        at = end
        return (
          <span key={start}>
            {visibleText(before)}
            <mark>{visibleText(text.slice(start, end))}</mark>
          </span>
        )
      })}
      {visibleText(text.slice(at))}
    </>
  )
}

const FoundRow = ({ found }: { found: Found }) =>
  found.kind === 'file' ? (
    <a class="found-file mono" href={fragmentOf('files', 'open', found.group.path)} data-row={found.group.path}>
      {visibleName(found.group.path)}
      {found.group.capped && <span class="quiet small"> and more in this file</span>}
    </a>
  ) : (
    <a
      class="found-hit mono"
      href={fragmentOf('files', 'open', found.path, String(found.hit.line))}
      data-row={foundKey(found)}
    >
      <span class="quiet found-line">{found.hit.line}</span>
      <span dir="ltr">
        <Marked {...found.hit} />
      </span>
    </a>
  )

/** How current the answer is, in words; nothing where it is. */
const freshnessOf = ({ freshness, partial }: SearchResult): string =>
  [
    freshness.state === 'building' && `The index is being built: ${Math.round((freshness.progress ?? 0) * 100)} %.`,
    freshness.state === 'stale' && `The index is behind by ${countText(freshness.behind ?? 0)} files.`,
    partial && freshness.state !== 'building' && 'The search stopped at a limit: there may be more.',
  ]
    .filter(Boolean)
    .join(' ')

/** Searches the workspace, and shows what was found in place of the tree. */
export const SearchPane = ({ query, mode }: { query: string; mode: Signal<SearchMode> }) => {
  const words = useSettled(query.trim())
  const dir = useSignal('')
  const include = useSignal('')
  const caseSensitive = useSignal(false)
  const word = useSignal(false)
  const literal = useSignal(false)
  const ignored = useSignal(false)
  const pages = useSignal<readonly SearchResult[]>([])
  const fault = useSignal('')
  const busy = useSignal(false)
  const running = useRef<AbortController>(undefined)
  const asked = {
    query: words,
    mode: mode.value,
    ...(dir.value && { dir: dir.value }),
    ...(include.value && { include: include.value }),
    ...(caseSensitive.value && { caseSensitive: true }),
    ...(word.value && { word: true }),
    ...(literal.value && { literal: true }),
    ...(ignored.value && { includeIgnored: true }),
  }
  // An answer of an index that was behind is asked for again when the index moved.
  const behind = pages.value.length === 1 && pages.value[0]!.freshness.state !== 'fresh'
  const moved = useRef(0)
  const index = hello.value?.versions.index ?? 0
  if (behind) moved.current = index
  const settled = useSettled(JSON.stringify([asked, moved.current]), 100)
  const read = async (after?: string) => {
    running.current?.abort()
    const stop = new AbortController()
    running.current = stop
    busy.value = true
    try {
      const page = await askDaemon('GET /workspace/search', { ...asked, ...(after && { after }) }, stop.signal)
      if (stop.signal.aborted) return
      const known = new Set(after ? pages.value.flatMap(({ groups }) => groups.map(({ path }) => path)) : [])
      const fresh = { ...page, groups: page.groups.filter(({ path }) => !known.has(path)) }
      pages.value = after ? [...pages.value, fresh] : [fresh]
      fault.value = ''
    } catch (error) {
      if (!stop.signal.aborted) fault.value = faultSentence(error)
    }
    if (running.current === stop) busy.value = false
  }
  useEffect(() => {
    if (words) void read()
    return () => running.current?.abort()
  }, [settled])
  const last = pages.value.at(-1)
  const rows = pages.value.flatMap(({ groups, mode: ran }) => rowsOfGroups(groups, ran))
  const notes = last && [last.note, last.hint, freshnessOf(last)].filter(Boolean).map(String)
  return (
    <>
      <div class="side-filters">
        <ChoiceField label="Look for" value={mode} choices={MODES} />
        <details>
          <summary>Where and how</summary>
          <TextField label="Folder" type="search" value={dir} />
          <TextField label="Files" type="search" value={include} placeholder="*.ts, !docs" />
          <CheckField label="Capitals matter" value={caseSensitive} />
          <CheckField label="Whole words" value={word} />
          <CheckField label="No regular expression" value={literal} />
          <CheckField label="Ignored files too" value={ignored} />
        </details>
      </div>
      {fault.value && (
        <p class="notice bad side-note" role="alert">
          {fault.value}
        </p>
      )}
      {!last ? (
        busy.value && <Bones />
      ) : (
        <>
          <p class="side-note quiet small" role="status" aria-busy={busy.value}>
            {last.total === 0
              ? 'Nothing was found.'
              : `${countText(last.total)}${last.partial ? ' or more' : ''} in ${countText(last.files)} files.`}{' '}
            {notes?.map(visibleText).join(' ')}
          </p>
          {last.related.length > 0 && (
            <p class="side-note quiet small">Related: {last.related.map(visibleName).join(', ')}</p>
          )}
          {rows.length > 0 && (
            <VirtualList
              label="What was found"
              class="found"
              items={rows}
              keyOf={foundKey}
              estimate={() => 30}
              render={found => <FoundRow found={found} />}
            />
          )}
          {last.truncated && last.cursor && (
            <div class="more-row">
              <button class="button" type="button" disabled={busy.value} onClick={() => void read(last.cursor)}>
                Show more
              </button>
            </div>
          )}
        </>
      )}
    </>
  )
}
