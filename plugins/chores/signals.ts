import { readdir } from 'node:fs/promises'
import { join } from 'node:path/posix'
import type { Context, Host } from '../../sdk/index.js'
import { pathOfRepo } from '../../sdk/index.js'
import type { PathTree } from '../../sdk/node/files/open-path.js'
import type { NamedModule } from '../workspace/contract.js'
import type { ChorePackage, ChoreSignals, RepositoryShape } from './contract.js'
import { packageIn } from './package-manifests.js'

const MOST_PACKAGES = 200
const MOST_DEPS = 1_000
const MOST_FILES = 100
const LISTED = 12

const DOCS = /^(?:readme|contributing|changelog|architecture|security|agents|claude)(?:\.\w+)?$|\.(?:md|rst|adoc)$/i
const DOCKERFILES = /^(?:(?:.+\.)?dockerfile(?:\..+)?|containerfile|(?:docker-)?compose(?:\..+)?\.ya?ml)$/i
const CI =
  /^(?:\.gitlab-ci\.yml|\.travis\.yml|azure-pipelines\.yml|bitbucket-pipelines\.yml|jenkinsfile|\.drone\.yml)$/i
const CI_FOLDERS = ['.github/workflows', '.forgejo/workflows', '.gitea/workflows', '.circleci', '.buildkite', '.ci']
const LOCKFILES = new Set([
  ...['package-lock.json', 'npm-shrinkwrap.json', 'pnpm-lock.yaml', 'yarn.lock', 'bun.lock', 'bun.lockb', 'uv.lock'],
  ...['poetry.lock', 'pdm.lock', 'Pipfile.lock', 'Cargo.lock', 'go.sum', 'Gemfile.lock', 'composer.lock'],
])
const MANIFESTS = new Set([
  ...['package.json', 'pyproject.toml', 'requirements.txt', 'Pipfile', 'setup.py', 'Cargo.toml', 'go.mod', 'go.work'],
  ...['Gemfile', 'composer.json', 'pom.xml', 'build.gradle', 'build.gradle.kts'],
])

/** The names of the plain files of a folder of a repository. */
const filesIn = async (root: string, folder: string): Promise<string[]> => {
  const entries = await readdir(join(root, folder), { withFileTypes: true }).catch(() => [])
  return entries.filter(entry => entry.isFile()).map(({ name }) => join(folder, name))
}

const lastPart = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
const named = (paths: readonly string[], pattern: RegExp): string[] =>
  paths
    .filter(path => pattern.test(lastPart(path)))
    .sort()
    .slice(0, MOST_FILES)

const shapeOf = async (root: string, packages: readonly ChorePackage[]): Promise<RepositoryShape> => {
  const folders = ['', 'docker', 'deploy', '.devcontainer', ...packages.map(({ dir }) => dir).filter(Boolean)]
  const [top = [], ...others] = await Promise.all([...new Set(folders)].map(folder => filesIn(root, folder)))
  const docs = await filesIn(root, 'docs')
  const ci = (await Promise.all(CI_FOLDERS.map(folder => filesIn(root, folder)))).flat()
  return {
    docs: named([...top, ...docs], DOCS),
    dockerfiles: named([...top, ...others.flat()], DOCKERFILES),
    ci: [...named(top, CI), ...ci.sort()].slice(0, MOST_FILES),
    lockfile: top.some(name => LOCKFILES.has(name)),
    packageManifest: top.some(name => MANIFESTS.has(name)),
    deps: [...new Set(packages.flatMap(({ dependencies, devDependencies }) => [...dependencies, ...devDependencies]))]
      .sort()
      .slice(0, MOST_DEPS),
  }
}

/** What manifests and the index say of a repository now. */
export const signalsOf = async (
  host: Pick<Host, 'call' | 'place'>,
  repo: string,
  modules: readonly NamedModule[],
  context: Context,
): Promise<ChoreSignals> => {
  const path = pathOfRepo(repo)
  const { workspace } = host.place
  const tree: PathTree = { root: workspace, reach: undefined, readsGit: false }
  const [packages, health] = await Promise.all([
    Promise.all(modules.slice(0, MOST_PACKAGES).map(module => packageIn(tree, path, module))),
    host.call('GET /workspace/health', { repo, limit: LISTED }, { as: context }),
  ])
  return {
    packages,
    shape: await shapeOf(join(workspace, path), packages),
    hotspots: health.hotspots.slice(0, LISTED),
    keyModules: health.modules.slice(0, LISTED),
    totals: health.totals,
    indexed: health.freshness.state !== 'building',
  }
}
