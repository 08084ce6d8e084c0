import { useMemo } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { BlameHunk } from '../../../../git/contract.js'
import { askDaemon } from '../../data/api.js'
import { fragmentOf } from '../../data/route.js'
import { agoOf, countText, momentOf, visibleName, visibleText } from '../../ui/format.js'
import { VirtualList } from '../../ui/lists/list.js'
import { Loaded } from '../../ui/page.js'
import { useRead } from '../../ui/read.js'
import type { RepoTabProps } from './repo-tab.js'

const PAGE = 5_000

interface BlamedLine {
  readonly number: number
  readonly text: string
  /** On the first line of what a commit changed. */
  readonly hunk: BlameHunk | undefined
}

const BlameRow = ({ repo, line }: { repo: string; line: BlamedLine }) => (
  <div class="blame-row mono">
    <span class="blame-who small">
      {line.hunk
        && (line.hunk.sha === undefined ? (
          'not committed yet'
        ) : (
          <a
            href={fragmentOf('git', repo, 'log', line.hunk.sha)}
            data-row={String(line.number)}
            title={`${line.hunk.subject}, ${momentOf(line.hunk.at)}`}
          >
            {line.hunk.sha.slice(0, 8)} {visibleText(line.hunk.author)}, {agoOf(line.hunk.at)}
          </a>
        ))}
      {line.hunk?.conversationId !== undefined && (
        <>
          {' '}
          <a href={fragmentOf('c', line.hunk.conversationId)}>conversation</a>
        </>
      )}
    </span>
    <span class="quiet found-line">{line.number}</span>
    <span class="blame-text" dir="ltr">
      {visibleText(line.text)}
    </span>
  </div>
)

/** A file with who changed each line last. */
export const BlamePane = ({ repo, rest: [path = '', ref] }: RepoTabProps) => {
  const start = useSignal(1)
  const at = ref === undefined ? {} : { ref }
  const file = useRead(`${path} ${ref}`, () => askDaemon('GET /git/{repo}/file', { repo, path, ...at }))
  const blame = useRead(`${path} ${ref} ${start.value}`, () =>
    askDaemon('GET /git/{repo}/blame', { repo, path, ...at, start: start.value }),
  )
  const lines = useMemo(() => {
    if (!file.data || !blame.data) return []
    const texts = file.data.content.split('\n')
    return blame.data.hunks.flatMap(hunk =>
      Array.from({ length: hunk.count }, (_, by): BlamedLine => ({
        number: hunk.start + by,
        text: texts[hunk.start + by - 1] ?? '',
        hunk: by === 0 ? hunk : undefined,
      })),
    )
  }, [file.data, blame.data])
  const all = blame.data?.lines ?? 0
  return (
    <main class="page-fill">
      <div class="row file-state">
        <h2 class="mono grow">{visibleName(path)}</h2>
        {ref !== undefined && <span class="quiet small">as of {ref.slice(0, 8)}</span>}
        {all > PAGE && (
          <>
            <span class="quiet small" role="status">
              From line {countText(start.value)} of {countText(all)}
            </span>
            <button
              class="button"
              type="button"
              disabled={start.value === 1}
              onClick={() => {
                start.value = Math.max(1, start.value - PAGE)
              }}
            >
              Back
            </button>
            <button
              class="button"
              type="button"
              disabled={start.value + PAGE > all}
              onClick={() => {
                start.value += PAGE
              }}
            >
              On
            </button>
          </>
        )}
      </div>
      <Loaded query={file}>
        {() => (
          <Loaded query={blame}>
            {() => (
              <VirtualList
                label="Lines"
                items={lines}
                keyOf={({ number }) => String(number)}
                estimate={() => 24}
                render={line => <BlameRow repo={repo} line={line} />}
              />
            )}
          </Loaded>
        )}
      </Loaded>
    </main>
  )
}
