import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { GitCommit } from '../../../../git/contract.js'
import { askDaemon } from '../../data/api.js'
import { fragmentOf, goTo } from '../../data/route.js'
import { lanesOf, type CommitLane } from '../../run/commit-lanes.js'
import { useCommands } from '../../ui/commands.js'
import { TextField, useSettled } from '../../ui/fields.js'
import { agoOf, momentOf, visibleName, visibleText } from '../../ui/format.js'
import { VirtualList } from '../../ui/lists/list.js'
import { Loaded } from '../../ui/page.js'
import { MoreRow, usePages } from '../../ui/lists/more.js'
import { CommitPane } from './commit-pane.js'
import type { RepoTabProps } from './repo-tab.js'
import { NothingChosen, TwoPanes } from '../../ui/two-panes.js'

const PAGE = 200
const STEP = 12
const HEIGHT = 48
/** Further columns are drawn over each other. */
const MOST_LANES = 12

interface LogRow {
  readonly commit: GitCommit
  readonly lane: CommitLane | undefined
}

/** The lines of a commit to its neighbours; the text says the same by its parents. */
const Graph = ({ lane }: { lane: CommitLane }) => {
  const x = (at: number) => Math.min(at, MOST_LANES) * STEP + 8
  const widest = Math.max(lane.lane, ...lane.through, ...lane.joins, ...lane.leads)
  const [here, middle] = [x(lane.lane), HEIGHT / 2]
  const lines = [
    ...lane.through.map(at => `M${x(at)} 0V${HEIGHT}`),
    ...(lane.fromAbove ? [`M${here} 0V${middle}`] : []),
    ...lane.joins.map(at => `M${x(at)} 0L${here} ${middle}`),
    ...lane.leads.map(at => `M${here} ${middle}L${x(at)} ${HEIGHT}`),
  ]
  return (
    <svg class="graph" width={x(widest) + 8} height={HEIGHT} aria-hidden="true">
      <path d={lines.join('')} />
      <circle cx={here} cy={middle} r="4" />
    </svg>
  )
}

const Row = ({ repo, row, current }: { repo: string; row: LogRow; current: boolean }) => {
  const { commit, lane } = row
  return (
    <a
      class={`commit-row${current ? ' current' : ''}`}
      href={fragmentOf('git', repo, 'log', commit.sha)}
      data-row={commit.sha}
      aria-current={current ? 'true' : undefined}
    >
      {lane && <Graph lane={lane} />}
      <span class="commit-words">
        <span class="commit-first">
          <span class="commit-refs one-line">
            {commit.head && <span class="tag good">HEAD</span>}
            {commit.refs.map(ref => (
              <span key={ref} class="tag">
                {visibleName(ref)}
              </span>
            ))}
          </span>
          <span class="one-line grow" dir="auto">
            {visibleText(commit.subject)}
          </span>
        </span>
        <span class="quiet small one-line">
          <span class="mono">{commit.short}</span> {visibleText(commit.author)}{' '}
          <time dateTime={new Date(commit.at).toISOString()} title={momentOf(commit.at)}>
            {agoOf(commit.at)}
          </time>
        </span>
      </span>
    </a>
  )
}

/** The commits of a repository, and one of them. */
export const LogTab = ({ repo, rest: [sha, path], maintains }: RepoTabProps) => {
  const words = useSignal('')
  const author = useSignal('')
  const ref = useSignal('')
  const file = useSignal('')
  const asked = {
    repo,
    ...(words.value.trim().length > 1 && { query: words.value.trim() }),
    ...(author.value.trim() && { author: author.value.trim() }),
    ...(ref.value.trim() && { ref: ref.value.trim() }),
    ...(file.value.trim() && { path: file.value.trim() }),
  }
  const key = useSettled(JSON.stringify(asked))
  const list = usePages(`log ${key}`, ['refs'], async (skip: number = 0) => {
    const page = await askDaemon('GET /git/{repo}/log', { ...(JSON.parse(key) as typeof asked), limit: PAGE, skip })
    return { rows: page.commits, next: page.hasMore ? skip + page.commits.length : undefined }
  })
  const { query, older } = list
  const commits = useMemo(() => list.rows, [query.data, older.rows.length])
  const filtered = Object.keys(asked).some(name => name !== 'repo' && name !== 'ref')
  const rows = useMemo(() => {
    // Commits that a filter left out would leave holes in the graph.
    const lanes = filtered ? [] : lanesOf(commits)
    return commits.map((commit, at): LogRow => ({ commit, lane: lanes[at] }))
  }, [commits, filtered])
  const step = (by: 1 | -1) => {
    const at = commits.findIndex(one => one.sha === sha)
    const next = commits[at < 0 ? 0 : at + by]
    if (next) goTo('git', repo, 'log', next.sha)
  }
  useCommands([
    { id: 'next commit', label: 'Next commit', group: 'Git', keys: 'n', run: () => step(1) },
    { id: 'previous commit', label: 'Previous commit', group: 'Git', keys: 'p', run: () => step(-1) },
  ])
  return (
    <TwoPanes
      class="log-panes"
      chosen={sha !== undefined}
      detail={
        sha === undefined ? (
          <NothingChosen>Choose a commit to see what it changed.</NothingChosen>
        ) : (
          <CommitPane key={sha} repo={repo} sha={sha} path={path} maintains={maintains} />
        )
      }
    >
      <div class="side-filters">
        <TextField label="Words of the message" type="search" value={words} />
        <TextField label="Author" type="search" value={author} />
        <TextField label="Branch, tag or commit" type="search" value={ref} />
        <TextField label="File" type="search" value={file} />
      </div>
      <Loaded query={query}>
        {() =>
          rows.length === 0 ? (
            <p class="side-note quiet">
              {filtered ? 'No commit fits.' : 'Commits appear here as soon as there is one.'}
            </p>
          ) : (
            <>
              <VirtualList
                label="Commits"
                items={rows}
                keyOf={({ commit }) => commit.sha}
                estimate={() => HEIGHT}
                render={row => <Row repo={repo} row={row} current={row.commit.sha === sha} />}
              />
              <MoreRow label="Show older commits" of={older} />
            </>
          )
        }
      </Loaded>
    </TwoPanes>
  )
}
