import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { GitChange, OriginAgents, UncommittedChanges } from '../../../../git/contract.js'
import { askDaemon } from '../../data/api.js'
import { gitChanged } from '../../data/git-answers.js'
import { fragmentOf, goTo, showPlace } from '../../data/route.js'
import { draftsFor, landerOf } from '../../run/landed-paths.js'
import { useAction, type ActionState } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { useCommands } from '../../ui/commands.js'
import { countText, visibleName } from '../../ui/format.js'
import { LineCounts } from '../../ui/code/line-counts.js'
import { FaultLine, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { isWide } from '../../ui/wide.js'
import { CommitForm } from './commit-form.js'
import type { RepoTabProps } from './repo-tab.js'
import { WorkingFile, type ChangeSide } from './working-file.js'

const SECTIONS = [
  ['conflicted', 'Conflicts'],
  ['staged', 'Staged'],
  ['unstaged', 'Changed'],
] as const satisfies readonly (readonly [ChangeSide, string])[]

/** What a call takes at once. */
const MOST = 500

/** Stages or unstages paths, as many at a time as a call takes. */
const moveAll = async (repo: string, paths: readonly string[], stage: boolean): Promise<void> => {
  for (let at = 0; at < paths.length; at += MOST) {
    const asked = { repo, paths: paths.slice(at, at + MOST) }
    if (stage) await askDaemon('POST /git/{repo}/stage', asked)
    else await askDaemon('POST /git/{repo}/unstage', asked)
  }
  gitChanged()
}

/** The paths of a change in the index: both names of a rename. */
const legsOf = ({ path, from }: GitChange): string[] => (from === undefined ? [path] : [from, path])

interface ChangeRowProps {
  readonly repo: string
  readonly side: ChangeSide
  readonly change: GitChange
  /** Who landed it. */
  readonly by: string | undefined
  readonly current: boolean
  readonly action: ActionState | undefined
}

const ChangeRow = ({ repo, side, change, by, current, action }: ChangeRowProps) => {
  const { path, status, from } = change
  const name = visibleName(path)
  return (
    <li class={`file-row${current ? ' current' : ''}`}>
      <a
        class="file-link"
        href={fragmentOf('git', repo, 'changes', side, path)}
        data-row={`${side} ${path}`}
        aria-current={current ? 'true' : undefined}
      >
        <span class="mono file-name" dir="ltr">
          {name}
        </span>
        <span class="file-facts small">
          {status !== 'modified' && <span class={`tag${status === 'conflicted' ? ' bad' : ''}`}>{status}</span>}
          {from !== undefined && <span class="quiet">from {visibleName(from)}</span>}
          {by !== undefined && <span class="quiet">by {visibleName(by)}</span>}
          <LineCounts {...change} />
        </span>
      </a>
      {action && side !== 'conflicted' && (
        <ActionButton
          action={action}
          class="small-button"
          work={() => moveAll(repo, legsOf(change), side === 'unstaged')}
          about={name}
        >
          {side === 'unstaged' ? 'Stage' : 'Unstage'}
        </ActionButton>
      )}
    </li>
  )
}

interface ChangeListProps {
  readonly repo: string
  readonly changes: UncommittedChanges
  readonly current: string
  readonly action: ActionState
  readonly maintains: boolean
  readonly agents: OriginAgents
}

const ChangeList = ({ repo, changes, current, action, maintains, agents }: ChangeListProps) => (
  <nav class="files" aria-label="Uncommitted files">
    {SECTIONS.map(([side, label]) => {
      const list = changes[side]
      return (
        list.length > 0 && (
          <section key={side} aria-label={label}>
            <div class="row apart files-head">
              <h2>
                {label} <span class="quiet">{countText(list.length)}</span>
              </h2>
              {maintains && side !== 'conflicted' && (
                <ActionButton
                  action={action}
                  class="small-button"
                  work={() => moveAll(repo, list.flatMap(legsOf), side === 'unstaged')}
                >
                  {side === 'unstaged' ? 'Stage all' : 'Unstage all'}
                </ActionButton>
              )}
            </div>
            <ul>
              {list.map(change => (
                <ChangeRow
                  key={change.path}
                  repo={repo}
                  side={side}
                  change={change}
                  by={landerOf(changes, agents, change.path)}
                  current={current === `${side} ${change.path}`}
                  action={maintains ? action : undefined}
                />
              ))}
            </ul>
          </section>
        )
      )
    })}
    {changes.truncated !== undefined && (
      <p class="side-note quiet small">{countText(changes.truncated)} more changes are not listed.</p>
    )}
    <FaultLine fault={action.fault} />
    {maintains && <CommitForm repo={repo} changes={changes} drafts={draftsFor(changes, agents)} />}
  </nav>
)

/** What is uncommitted in a repository: staged, discarded, committed. */
export const ChangesTab = ({ repo, rest: [side, path], maintains }: RepoTabProps) => {
  const action = useAction()
  const ready = useSignal(false)
  const query = useQuery(`changes ${repo}`, ['refs', 'files', 'landings'], () =>
    askDaemon('GET /git/changes', { repo }),
  )
  const changes = query.data?.repos[0]
  const rows = changes ? SECTIONS.flatMap(([name]) => changes[name].map(change => ({ side: name, change }))) : []
  const shown = rows.find(row => row.side === side && row.change.path === path)
  const first = rows[0]
  const at = shown ? rows.indexOf(shown) : -1
  const step = (by: 1 | -1) => {
    const next = rows[at < 0 ? 0 : at + by]
    if (next) goTo('git', repo, 'changes', next.side, next.change.path)
  }
  useEffect(() => {
    ready.value = true
    // Where there is room beside the list, a file is open; one that moved to the other list is followed there.
    const moved = path !== undefined && !shown ? rows.find(row => row.change.path === path) : undefined
    const next = moved ?? (isWide() && !shown ? first : undefined)
    if (next) showPlace(fragmentOf('git', repo, 'changes', next.side, next.change.path))
  }, [side, path, shown === undefined, first?.change.path])
  useCommands([
    { id: 'next file', label: 'Next file', group: 'Git', keys: 'n', run: () => step(1) },
    { id: 'previous file', label: 'Previous file', group: 'Git', keys: 'p', run: () => step(-1) },
    ...(maintains && shown && shown.side !== 'conflicted'
      ? [
          {
            ...{ id: 'stage file', label: shown.side === 'staged' ? 'Unstage this file' : 'Stage this file' },
            ...{ group: 'Git', keys: 's' },
            run: () => void action.run(() => moveAll(repo, legsOf(shown.change), shown.side === 'unstaged')),
          },
        ]
      : []),
  ])
  return (
    <main class={`review${shown ? ' has-file' : ''}`}>
      {changes?.error ? (
        <p class="notice bad">{visibleName(changes.error)}</p>
      ) : query.data && rows.length === 0 && changes?.operation === undefined ? (
        <p class="empty quiet">Nothing is uncommitted. What you and agents change appears here.</p>
      ) : (
        <Loaded query={query}>
          {() =>
            changes && (
              <>
                <ChangeList
                  repo={repo}
                  changes={changes}
                  current={`${side} ${path}`}
                  action={action}
                  maintains={maintains}
                  agents={query.data?.originAgents ?? {}}
                />
                {shown ? (
                  <WorkingFile
                    key={`${side} ${path}`}
                    repo={repo}
                    side={shown.side}
                    change={shown.change}
                    maintains={maintains}
                  />
                ) : (
                  <p class="empty quiet">Choose a file to see what changed in it.</p>
                )}
              </>
            )
          }
        </Loaded>
      )}
    </main>
  )
}
