import { useEffect } from 'preact/hooks'
import { person } from '../../data/session/session.js'
import { repoTitle } from '../../data/git-answers.js'
import { followFiles } from '../../data/files/file-changes.js'
import { shownExtensions } from '../../data/extensions/shown-extensions.js'
import { fragmentOf, goTo } from '../../data/route.js'
import { askDaemon } from '../../data/api.js'
import { useCommands } from '../../ui/commands.js'
import { visibleName } from '../../ui/format.js'
import { Icon } from '../../ui/icons.js'
import { BoneWords } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { lazyView } from '../../ui/lazy.js'
import { reaches, type PageProps } from '../registry.js'
import { ChangesTab } from './changes-tab.js'
import { OperationNotice } from './operation-notice.js'
import { RepositoriesPane } from './repositories-pane.js'

const LogTab = lazyView(async () => (await import('./log-tab.js')).LogTab)
const BranchesTab = lazyView(async () => (await import('./branches-tab.js')).BranchesTab)
const StashTab = lazyView(async () => (await import('./stash-tab.js')).StashTab)
const RemotesTab = lazyView(async () => (await import('./remotes-tab.js')).RemotesTab)
const BlamePane = lazyView(async () => (await import('./blame-pane.js')).BlamePane)

const TABS = [
  ['changes', 'Changes', ChangesTab],
  ['log', 'Log', LogTab],
  ['branches', 'Branches', BranchesTab],
  ['stash', 'Stash', StashTab],
  ['remotes', 'Remotes', RemotesTab],
] as const

const Repo = ({ repo, tab, rest }: { repo: string; tab: string; rest: readonly string[] }) => {
  const maintains = reaches(person.value?.role, 'maintainer')
  const { data: remote } = useQuery(`remote ${repo}`, ['refs'], () => askDaemon('GET /git/{repo}/remote', { repo }))
  const { data: status } = useQuery(`changes ${repo}`, ['refs', 'files'], () => askDaemon('GET /git/changes', { repo }))
  const branch = status?.repos[0]?.branch
  useCommands(
    TABS.map(([name, label]) => ({
      ...{ id: `git ${name}`, label: `${label} of this repository`, group: 'Git' },
      run: () => goTo('git', repo, name),
    })),
  )
  const [, , Tab] = TABS.find(([name]) => name === tab) ?? TABS[0]
  return (
    <>
      <header class="page-head">
        <a class="button plainly back" href={fragmentOf('git')} aria-label="Back to the repositories">
          <Icon name="back" />
        </a>
        <h1 class="grow one-line" dir="auto">
          {visibleName(repoTitle(repo))}
        </h1>
        <span>
          {status === undefined ? (
            <BoneWords />
          ) : (
            <span class="tag">{branch === undefined ? 'No branch' : visibleName(branch)}</span>
          )}{' '}
          {remote && (remote.ahead > 0 || remote.behind > 0) && (
            <span class="quiet small">
              {remote.ahead} ahead, {remote.behind} behind
            </span>
          )}
        </span>
      </header>
      <nav class="tabs inset-tabs" aria-label="Parts of the repository">
        {TABS.map(([name, label]) => (
          <a key={name} href={fragmentOf('git', repo, name)} aria-current={name === tab ? 'page' : undefined}>
            {label}
          </a>
        ))}
        {shownExtensions.value.flatMap(({ id, manifest }) =>
          (manifest.contributes?.views ?? [])
            .filter(({ surface }) => surface === 'directory')
            .map(({ id: view, label }) => (
              <a key={`${id} ${view}`} href={fragmentOf('x', id, view, repo)} dir="auto">
                {visibleName(label)}
              </a>
            )),
        )}
      </nav>
      <OperationNotice repo={repo} maintains={maintains} />
      {tab === 'blame' ? (
        <BlamePane repo={repo} rest={rest} maintains={maintains} />
      ) : (
        <Tab repo={repo} rest={rest} maintains={maintains} />
      )}
    </>
  )
}

/** The repositories of the workspace: what is uncommitted, and what was committed. */
export const GitPage = ({ rest: [repo, tab = 'changes', ...rest] }: PageProps) => {
  useEffect(followFiles, [])
  return repo === undefined ? <RepositoriesPane /> : <Repo key={repo} repo={repo} tab={tab} rest={rest} />
}
