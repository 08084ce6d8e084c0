import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type {
  AgentCard,
  AgentChange,
  AgentChanges,
  ExpectedTips,
  LandResult,
  RepoChanges,
} from '../../../../agents/contract.js'
import { askDaemon } from '../../data/api.js'
import { turnIsLive } from '../../data/roster.js'
import { fragmentOf, goTo, showPlace } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { tipsOf } from '../../data/tips.js'
import { markViewed, viewedOf } from '../../data/viewed.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { useCommands } from '../../ui/commands.js'
import { usePart } from '../../ui/lists/rows.js'
import { isWide } from '../../ui/wide.js'
import { countText, sizeTextOf, visibleName } from '../../ui/format.js'
import { Icon } from '../../ui/icons.js'
import { useLastAnswer, useQuery } from '../../ui/query.js'
import { cardTitle, StatusTag } from '../../ui/status.js'
import { reaches } from '../registry.js'
import { FilePane } from './file-pane.js'
import { SideViews } from '../../ui/extensions/side-views.js'
import { lazyView } from '../../ui/lazy.js'
import { DataAge } from '../../ui/data-age.js'
import { FaultLine } from '../../ui/page.js'
import { ignored } from '../../../../../sdk/ignored.js'

const LandDialog = lazyView(async () => (await import('./land-dialog.js')).LandDialog)
const LandedUncommitted = lazyView(async () => (await import('../conversation/uncommitted-note.js')).LandedUncommitted)
const ConflictPane = lazyView(async () => (await import('./conflict-pane.js')).ConflictPane)

const SIGNS: { readonly [status in AgentChange['status']]: string } = {
  added: 'new',
  modified: '',
  deleted: 'deleted',
  renamed: 'renamed',
  'type-changed': 'type',
  conflicted: 'conflict',
}

/** A change by repository and path, for selecting, viewing and landing. */
const placeOfChange = (repo: string, { path }: Pick<AgentChange, 'path'>): string => `${repo}\n${path}`

/** Changes by package, in the order of the daemon. */
const packagesOf = ({
  changes,
  modules,
}: RepoChanges): (readonly [name: string, changes: readonly AgentChange[]])[] => {
  const groups = new Map<string, AgentChange[]>()
  for (const change of changes) {
    const home = modules
      .filter(({ dir }) => dir === '' || dir === '.' || change.path.startsWith(`${dir}/`))
      .sort((a, b) => b.dir.length - a.dir.length)[0]
    const name = home?.name ?? ''
    groups.set(name, [...(groups.get(name) ?? []), change])
  }
  return [...groups]
}

interface FileListProps {
  readonly id: string
  readonly changes: AgentChanges
  readonly current: string | undefined
  readonly picked: ReadonlySet<string>
  readonly toggle?: ((place: string) => void) | undefined
}

const FileRow = ({
  id,
  repo,
  change,
  ...props
}: Omit<FileListProps, 'changes'> & { repo: string; change: AgentChange }) => {
  const { path, status, additions, deletions, landed, tooLarge } = change
  const place = placeOfChange(repo, change)
  const viewed = viewedOf(id).has(place)
  const name = visibleName(path)
  return (
    <li class={`file-row${props.current === place ? ' current' : ''}${viewed ? ' viewed' : ''}`}>
      {props.toggle && !landed && tooLarge === undefined && (
        <label class="fleet-pick">
          <input type="checkbox" checked={props.picked.has(place)} onChange={() => props.toggle!(place)} />
          <span class="visually-hidden">Land {name}</span>
        </label>
      )}
      <a
        class="file-link"
        href={fragmentOf('c', id, 'changes', repo, path)}
        data-row={place}
        aria-current={props.current === place ? 'true' : undefined}
      >
        <span class="mono file-name" dir="ltr">
          {name}
        </span>
        <span class="file-facts small">
          {SIGNS[status] && <span class="tag">{SIGNS[status]}</span>}
          {landed && <span class="tag good">landed</span>}
          {tooLarge !== undefined && <span class="tag warn">too large: {sizeTextOf(tooLarge)}</span>}
          {viewed && <span class="tag">viewed</span>}
          {additions !== undefined && <span class="mono plus">+{countText(additions)}</span>}
          {deletions !== undefined && <span class="mono minus">−{countText(deletions)}</span>}
          {additions === undefined && deletions === undefined && status !== 'deleted' && (
            <span class="quiet">binary</span>
          )}
        </span>
      </a>
    </li>
  )
}

const FileList = ({ changes, ...props }: FileListProps) => (
  <nav class="files" aria-label="Changed files">
    {changes.repos.map(repo => (
      <section key={repo.repo}>
        {changes.repos.length > 1 && <h2 class="files-head">{visibleName(repo.repo)}</h2>}
        {packagesOf(repo).map(([name, list]) => (
          <div key={name}>
            {name && <h3 class="files-head quiet">{visibleName(name)}</h3>}
            <ul>
              {list.map(change => (
                <FileRow key={change.path} repo={repo.repo} change={change} {...props} />
              ))}
            </ul>
          </div>
        ))}
      </section>
    ))}
  </nav>
)

const sentenceOfLanding = ({ landed, resolving }: LandResult): string =>
  resolving?.length
    ? 'The work is in the workspace. Files with conflict markers wait to be resolved.'
    : landed
      ? 'The work is in the workspace, as uncommitted changes.'
      : 'Nothing was landed.'

interface ReviewProps {
  readonly id: string
  readonly agent: AgentCard | undefined
  readonly rest: readonly string[]
}

/** The changes of a conversation: review file by file, comment, land or discard. */
export const ReviewPage = ({ id, agent, rest }: ReviewProps) => {
  const [shownRepo, shownPath] = rest
  const action = useAction()
  const landing = useSignal<readonly string[] | undefined>(undefined)
  useEffect(() => void LandDialog.preload().catch(ignored('it is loaded when it is opened')), [])
  const picked = useSignal<ReadonlySet<string>>(new Set())
  const discarding = useSignal<{ readonly expect?: ExpectedTips } | undefined>(undefined)
  const said = useSignal('')
  const diff = useQuery(`diff ${id} ${agent?.updatedAt ?? 0}`, ['landings'], () =>
    askDaemon('GET /agents/{id}/diff', { id }),
  )
  // While something is read again the page stays, with what a person types there.
  const changes = useLastAnswer(diff)
  const found = changes?.repos.find(one => one.repo === shownRepo)
  const change = found?.changes.find(one => one.path === shownPath)
  const current = found && change ? placeOfChange(found.repo, change) : undefined
  const mayLand = reaches(person.value?.role, 'maintainer')
  const mayWork = reaches(person.value?.role, 'collaborator')
  const outstanding = changes?.repos.flatMap(one => one.changes.filter(file => !file.landed)).length ?? 0
  const conflicts = useLastAnswer(
    useQuery(`conflicts ${id} ${agent?.updatedAt ?? 0}`, ['landings'], () =>
      askDaemon('GET /agents/{id}/conflicts', { id }),
    ),
  )
  const files = changes?.repos.flatMap(one =>
    packagesOf(one).flatMap(([, list]) =>
      list.map(file => ({ repo: one.repo, file, place: placeOfChange(one.repo, file) })),
    ),
  )
  const first = files?.find(({ file, place }) => !file.landed && !viewedOf(id).has(place)) ?? files?.[0]
  useEffect(() => {
    // If there is space beside the list, a file is open from the beginning.
    if (shownPath === undefined && first && isWide())
      showPlace(fragmentOf('c', id, 'changes', first.repo, first.file.path))
  }, [shownPath, first?.place])
  const step = (by: 1 | -1) => {
    const at = files?.findIndex(({ place }) => place === current) ?? -1
    const next = files?.[at < 0 ? 0 : at + by]
    if (next) goTo('c', id, 'changes', next.repo, next.file.path)
  }
  useCommands([
    { id: 'next file', label: 'Next file', group: 'Changes', keys: 'n', run: () => step(1) },
    { id: 'previous file', label: 'Previous file', group: 'Changes', keys: 'p', run: () => step(-1) },
    ...(current
      ? [
          {
            ...{ id: 'viewed', label: 'Mark this file as viewed', group: 'Changes', keys: 'v' },
            run: () => markViewed(id, current, !viewedOf(id).has(current)),
          },
        ]
      : []),
    ...(mayLand && current && !change?.landed
      ? [
          {
            ...{ id: 'land file', label: 'Land this file …', group: 'Changes', keys: 'x' },
            run: () => {
              landing.value = [current]
            },
          },
        ]
      : []),
    ...(outstanding > 0 && mayWork
      ? [
          {
            ...{ id: 'land', label: mayLand ? 'Land …' : 'Ask to land', group: 'Changes', keys: 'shift+l' },
            run: () => void usePart('land', 'click'),
          },
        ]
      : []),
  ])
  const conflict = conflicts?.files.some(one => one.repo === found?.repo && one.path === shownPath)
  const upToFiles = change !== undefined && !isWide()
  return (
    <>
      <header class="page-head">
        <a
          class="button plainly back"
          href={upToFiles ? fragmentOf('c', id, 'changes') : fragmentOf('c', id)}
          aria-label={upToFiles ? 'Back to the files' : 'Back to the conversation'}
        >
          <Icon name="back" />
        </a>
        <h1 class="grow one-line" dir="auto">
          <span class="visually-hidden">Changes of </span>
          {visibleName(agent ? cardTitle(agent) : id)}
        </h1>
        {agent && <StatusTag status={agent.status} />}
        {mayWork && agent && !turnIsLive(agent) && (
          <ActionButton action={action} work={() => askDaemon('POST /agents/{id}/sync', { id })}>
            Bring up to date
          </ActionButton>
        )}
        {mayLand && agent && !turnIsLive(agent) && (
          <button
            class="button danger"
            type="button"
            disabled={!changes && diff.error === undefined}
            onClick={() => {
              discarding.value = changes ? { expect: tipsOf(changes) } : {}
            }}
          >
            Discard
          </button>
        )}
        {mayLand ? (
          <button
            class="button primary"
            type="button"
            data-key="land"
            disabled={outstanding === 0}
            onClick={() => {
              landing.value = [...picked.value]
            }}
          >
            {picked.value.size ? `Land ${picked.value.size} files` : 'Land'}
          </button>
        ) : (
          mayWork && (
            <ActionButton
              action={action}
              class="primary"
              data-key="land"
              disabled={outstanding === 0 || agent?.landRequested !== undefined}
              work={() => askDaemon('POST /agents/{id}/request-land', { id })}
            >
              {agent?.landRequested ? 'Landing requested' : 'Ask to land'}
            </ActionButton>
          )
        )}
      </header>
      {discarding.value && (
        <p class="banner" role="alert">
          <span class="grow">Throw this work and the conversation away? What was landed stays.</span>
          <ActionButton
            action={action}
            class="danger"
            work={async () => {
              await askDaemon('POST /agents/{id}/discard', { id, ...discarding.value })
              goTo('fleet')
            }}
          >
            Discard the work
          </ActionButton>
          <button
            class="button"
            type="button"
            onClick={() => {
              discarding.value = undefined
            }}
          >
            Keep it
          </button>
        </p>
      )}
      <FaultLine fault={action.fault} />
      <DataAge at={diff.at} />
      {said.value && (
        <p class="notice" role="status">
          {said.value}
        </p>
      )}
      {mayLand && agent && changes?.repos.some(one => one.changes.some(({ landed }) => landed)) && (
        <LandedUncommitted agent={agent} />
      )}
      <SideViews beside="changes" surface={{ conversation: id, ...(change && { path: change.path }) }} />
      <main class={`review${change ? ' has-file' : ''}`}>
        {diff.error !== undefined && !changes ? (
          <p class="notice bad">{(diff.error as Error).message}</p>
        ) : !changes ? (
          <div class="files" aria-busy="true" />
        ) : changes.repos.every(one => one.changes.length === 0) ? (
          <p class="empty quiet">The files that this conversation changes appear here.</p>
        ) : (
          <>
            <FileList
              id={id}
              changes={changes}
              current={current}
              picked={picked.value}
              toggle={
                mayLand
                  ? place => {
                      const next = new Set(picked.value)
                      if (!next.delete(place)) next.add(place)
                      picked.value = next
                    }
                  : undefined
              }
            />
            {found && change ? (
              conflict ? (
                <ConflictPane
                  key={`${found.tip} ${current}`}
                  id={id}
                  repo={found.repo}
                  path={change.path}
                  tips={tipsOf(changes)}
                  decided={sentence => {
                    said.value = sentence
                  }}
                />
              ) : (
                <FilePane
                  key={current}
                  id={id}
                  repo={found.repo}
                  change={change}
                  tip={found.tip}
                  viewed={viewedOf(id).has(current!)}
                  setViewed={viewed => markViewed(id, current!, viewed)}
                  mayComment={mayWork}
                />
              )
            ) : (
              <p class="empty quiet">Choose a file to see what changed in it.</p>
            )}
          </>
        )}
      </main>
      {landing.value && changes && (
        <LandDialog
          id={id}
          changes={changes}
          only={landing.value.map(place => {
            const [inRepo = '', path = ''] = place.split('\n')
            return { repo: inRepo, path }
          })}
          close={result => {
            landing.value = undefined
            if (!result) return
            said.value = sentenceOfLanding(result)
            picked.value = new Set()
          }}
        />
      )}
    </>
  )
}
