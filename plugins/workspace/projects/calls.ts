import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { allows, isWithin, refuse, type Context, type Handlers, type Host } from '../../../sdk/index.js'
import { openPath, type PathTree, shownPath } from '../../../sdk/node/files/open-path.js'
import { missingProgram } from '../../../sdk/node/programs/run.js'
import { sessionName } from '../../../sdk/node/programs/session-name.js'
import { startSession, visibleFolders } from '../../../sdk/node/programs/work-sessions.js'
import { record } from '../../../sdk/node/record/record.js'
import { repoFolder } from '../../../sdk/node/repositories/repo-folder.js'
import { pathIn } from '../tree/ignore-rules.js'
import { namesOfFolder } from '../tree/sweep.js'
import { sharedTree } from '../../../sdk/node/access/caller-tree.js'
import type { ProjectCalls, ProjectSetup } from './contract.js'
import { installSession, type Installs } from './installs.js'
import type { InstalledPrograms } from './installed-programs.js'
import { projectFiles, shownCommand } from './managers.js'
import { projectsBelow, type Project } from './projects.js'
import { dependencyState } from './readiness.js'
import { testsOf } from './test-commands.js'

/** Dependencies of the calls about projects and apps. */
export interface ProjectDeps {
  readonly host: Host
  readonly installs: Installs
  readonly programs: InstalledPrograms
}

/** The name of a folder as projects have it: empty for the root. */
const dirOf = (path: string): string => (path === '.' ? '' : path)

/** Whether the dependencies of a project are there, or on their way. */
export const setupOf = async (
  { installs, programs }: Pick<ProjectDeps, 'installs' | 'programs'>,
  tree: PathTree,
  project: Project,
): Promise<ProjectSetup> => {
  const { path, ecosystem, manager, evidence, install, program } = project
  const { state: found, missing } = await dependencyState(tree, project, installs.doneOf(project))
  const state = found === 'ready' && installs.hasFailed(path) ? 'stale' : found
  const installed = state === 'ready' || (await programs.has(program))
  return {
    dir: dirOf(path),
    ecosystem,
    manager,
    evidence,
    command: install.map(shownCommand).join(' && '),
    state: installs.isQueued(path) ? 'installing' : installed ? state : 'unsupported',
    ...(missing !== undefined && { missing }),
  }
}

/** Opens a folder in which a caller may start programs; answers its real path from the root. */
export const workFolder = async (tree: PathTree, path: string): Promise<string | undefined> => {
  await using found = await openPath(tree, path)
  if (!found?.stats.isDirectory()) return undefined
  if (!allows(tree.reach, found.path, 'work'))
    refuse('forbidden', `${shownPath(path)} may be read only: it lies in an area held for reading`)
  return found.path
}

const needFolder = async (tree: PathTree, path: string): Promise<string> =>
  (await workFolder(tree, path)) ?? refuse('not-found', `the workspace has no folder ${shownPath(path)}`)

/** Finds projects, installs their dependencies, and runs their tests. */
export const projectCalls = (deps: ProjectDeps): Handlers<ProjectCalls> => {
  const { host, installs, programs } = deps

  const install = async (dirs: readonly string[], context: Context) => {
    const tree = await sharedTree(host, context)
    const all = await projectsBelow(tree)
    const paths = new Set<string>()
    for (const dir of dirs) {
      const path = await needFolder(tree, dir === '' ? '.' : dir)
      if (!all.some(project => project.path === path))
        refuse('not-found', `no project is in ${shownPath(path)}: GET /workspace/setup lists them`)
      paths.add(path)
    }
    const jobs = await Promise.all(
      [...paths].map(async path => {
        const here = all.filter(project => project.path === path)
        const setups = await Promise.all(here.map(project => setupOf(deps, tree, project)))
        const open = setups.filter(({ state }) => state === 'needs-setup' || state === 'stale')
        return open.length > 0 ? [{ path, managers: [...new Set(open.map(({ manager }) => manager))] }] : []
      }),
    )
    const only = visibleFolders(tree.reach)
    const queued = await installs.add(jobs.flat().map(job => ({ ...job, ...(only && { only }) })))
    if (queued.length > 0)
      await record(host, { type: 'workspace.install', extra: { dirs: queued.map(dirOf) } }, context)
    const sessions = [...paths]
      .filter(path => queued.includes(path) || installs.isQueued(path))
      .map(path => ({ dir: dirOf(path), session: installSession(path) }))
    return { queued: queued.map(dirOf), sessions }
  }

  /** The test commands of folders of a repository; refused where one is unknown or its program is missing. */
  const commandsOf = async (tree: PathTree, repo: string, dirs: readonly string[]) => {
    const found = []
    for (const dir of new Set(dirs)) {
      const path = await needFolder(tree, dir === '' ? repo : pathIn(repo, dir))
      if (!isWithin(repo, path)) refuse('not-found', `the repository has no folder ${shownPath(dir)}`)
      const names = namesOfFolder(tree.root, path).map(({ name }) => name.toString())
      const tests =
        (await testsOf(projectFiles(tree, path, new Set(names)), names))
        ?? refuse('unprocessable', `no test command is known for ${shownPath(dir)}: its manifests name none`)
      const { program } = tests
      const there = program.includes('/')
        ? await lstat(join(tree.root, path, program)).then(
            () => true,
            () => false,
          )
        : await programs.has(program)
      if (!there) await missingProgram(program)
      found.push({ dir, path, words: tests.words })
    }
    return found
  }

  return {
    'GET /workspace/setup': async (_, context) => {
      await installs.settle()
      const tree = await sharedTree(host, context)
      const projects = await projectsBelow(tree)
      return { projects: await Promise.all(projects.map(project => setupOf(deps, tree, project))) }
    },

    'POST /workspace/setup/install': ({ dirs }, context) => install(dirs, context),

    'POST /workspace/repos/{repo}/tests': async ({ repo, session, dirs }, context) => {
      const tree = await sharedTree(host, context)
      const path = await repoFolder(tree, repo)
      const commands = await commandsOf(tree, path, dirs)
      const only = visibleFolders(tree.reach)
      const { name } = await startSession(host, {
        name: sessionName(path, session),
        purpose: `tests of ${path}`,
        label: `Tests of ${repo}`.slice(0, 80),
        steps: commands.map(each => ({ cwd: each.path, program: [...each.words] })),
        goOn: true,
        env: { CI: 'true' },
        ...(only && { only }),
      })
      await record(host, { type: 'workspace.tests', extra: { repo, session: name, dirs: [...dirs] } }, context)
      return {
        ok: true,
        session: name,
        commands: commands.map(({ dir, words }) => ({ dir, command: shownCommand(words) })),
      }
    },
  }
}
