import { useEffect } from 'preact/hooks'
import { askDaemon } from '../../data/api.js'
import { followFiles } from '../../data/files/file-changes.js'
import { repoTitle } from '../../data/git-answers.js'
import { served } from '../../data/live.js'
import { fragmentOf } from '../../data/route.js'
import { visibleName } from '../../ui/format.js'
import { PageFrame } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import type { PageProps } from '../registry.js'
import { AppsSection } from './apps-section.js'
import { DependenciesSection } from './dependencies-section.js'
import { PackagesSection } from './packages-section.js'
import { PanelSection } from './panel-section.js'

/** The projects of the workspace: their dependencies, apps, packages and tests. */
export const ProjectsPage = ({ rest: [repo = 'root'] }: PageProps) => {
  useEffect(followFiles, [])
  const { data } = useQuery('repos', ['repos'], () => askDaemon('GET /workspace/repos'))
  const repos = ['root', ...(data?.repos ?? [])]
  return (
    <PageFrame title="Projects">
      <DependenciesSection />
      {repos.length > 1 && (
        <nav class="tabs" aria-label="Repositories">
          {repos.map(name => (
            <a key={name} href={fragmentOf('projects', name)} aria-current={name === repo ? 'page' : undefined}>
              {visibleName(repoTitle(name))}
            </a>
          ))}
        </nav>
      )}
      {served.value.has('panels.get') && <PanelSection key={`panel ${repo}`} repo={repo} />}
      <AppsSection key={`apps ${repo}`} repo={repo} />
      <PackagesSection key={`packages ${repo}`} repo={repo} />
    </PageFrame>
  )
}
