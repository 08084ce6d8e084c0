import { refuse, type Handlers, ignored } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { repeat } from '../../../sdk/node/concurrency/repeat.js'
import type { PathTree } from '../../../sdk/node/files/open-path.js'
import { answeringScheme } from '../../../sdk/node/network/answers-http.js'
import { freePort } from '../../../sdk/node/network/free-port.js'
import { addressOfApp, appLabel, hideApp, showApp } from '../../../sdk/node/programs/previews.js'
import { missingProgram } from '../../../sdk/node/programs/run.js'
import { sessionName } from '../../../sdk/node/programs/session-name.js'
import {
  serverOfSession,
  sessionsByName,
  startSession,
  type WorkSession,
} from '../../../sdk/node/programs/work-sessions.js'
import { repoFolder } from '../../../sdk/node/repositories/repo-folder.js'
import type { ProjectDeps } from '../projects/calls.js'
import { setupOf } from '../projects/calls.js'
import { projectsAt, projectsBelow, type Project } from '../projects/projects.js'
import { keysAt, manifestAt, manifestText, manifestValue, textAt } from '../repositories/manifests.js'
import { pathIn } from '../tree/ignore-rules.js'
import { namesOfFolder } from '../tree/sweep.js'
import { sharedTree } from '../../../sdk/node/access/caller-tree.js'
import type { WorkspaceChanges } from '../watch/changes.js'
import type { AppCalls, AppSummary, RunPlan } from './contract.js'
import { Scaffold, type PlannedApp } from './scaffold.js'
import { Templates, TEMPLATES_FILE } from './templates.js'

const NAME = /^[a-z][a-z0-9-]{0,59}$/
const LOOK_MS = 1_000
const MOST_APPS = 200
const PURPOSE = 'app '

/** What an app is made with, by the package it depends on. */
const FRAMEWORKS = [
  'next',
  'nuxt',
  'astro',
  '@sveltejs/kit',
  '@angular/core',
  'react-scripts',
  'vite',
  '@nestjs/core',
  'fastify',
  'express',
  'hono',
] as const

/** A runnable app in its folder. */
interface FoundApp {
  readonly app: string
  /** Its path from the workspace root. */
  readonly path: string
  /** The script that runs it. */
  readonly script: 'dev' | 'start'
  readonly kind?: string
}

/** Where a repository has its apps, from the workspace root. */
const appsFolder = async (tree: PathTree, repo: string): Promise<string> => {
  const folders = new Set(
    namesOfFolder(tree.root, repo).flatMap(entry => (entry.isDirectory() ? [entry.name.toString()] : [])),
  )
  if (folders.has('apps')) return pathIn(repo, 'apps')
  const manifests = await Promise.all(['package.json', 'pnpm-workspace.yaml'].map(file => manifestAt(tree, repo, file)))
  const named = manifests
    .flatMap(found => found?.members ?? [])
    .flatMap(pattern => /^(?:\.\/)?([\w.-]+)\/\*$/.exec(pattern)?.[1] ?? [])
    .find(name => folders.has(name))
  return pathIn(repo, named ?? 'apps')
}

const appAt = async (tree: PathTree, app: string, path: string): Promise<FoundApp | undefined> => {
  const text = await manifestText(tree, pathIn(path, 'package.json')).catch(() => undefined)
  const manifest = await manifestValue('package.json', text)
  const script = (['dev', 'start'] as const).find(each => textAt(manifest, 'scripts', each) !== undefined)
  if (!script) return undefined
  const uses = new Set([...keysAt(manifest, 'dependencies'), ...keysAt(manifest, 'devDependencies')])
  const kind = FRAMEWORKS.find(name => uses.has(name))
  return { app, path, script, ...(kind !== undefined && { kind }) }
}

const appsIn = async (tree: PathTree, repo: string): Promise<FoundApp[]> => {
  const folder = await appsFolder(tree, repo)
  const names = namesOfFolder(tree.root, folder)
    .flatMap(entry => (entry.isDirectory() && NAME.test(entry.name.toString()) ? [entry.name.toString()] : []))
    .sort()
    .slice(0, MOST_APPS)
  const apps = await Promise.all(names.map(name => appAt(tree, name, pathIn(folder, name))))
  return apps.flatMap(app => app ?? [])
}

/** The project that an app is installed with: the workspace of packages it is a member of, or its own. */
const projectOf = async (tree: PathTree, repo: string, path: string): Promise<Project | undefined> => {
  const covering = (await projectsBelow(tree, repo)).find(
    project => project.ecosystem === 'node' && (project.path === path || project.members.includes(path)),
  )
  return covering ?? (await projectsAt(tree, path)).find(({ ecosystem }) => ecosystem === 'node')
}

/** Lists, makes, starts and ends the apps of repositories. */
export const appCalls = async (
  deps: ProjectDeps & { readonly changes: WorkspaceChanges },
): Promise<Handlers<AppCalls>> => {
  const { host, changes, installs, programs } = deps
  const templates = new Templates(host)
  host.contribute('system.manifestProblems', async () => [
    { path: TEMPLATES_FILE, problems: await templates.problems() },
  ])
  repeat(host, LOOK_MS, 'reading the source of templates', () => templates.look())
  const scaffold = await Scaffold.open(host, paths => changes.note([...paths]))
  const locks = new KeyedMutex()

  const publish = (path: string) =>
    void host
      .call('kernel.events.publish', { domain: 'panels', key: path, within: [path] })
      .catch(ignored('clients read the state again when they connect'))
  host.on('terminal.ended', ({ purpose }) => {
    if (purpose.startsWith(PURPOSE)) publish(purpose.slice(PURPOSE.length))
  })

  const addSession = (repo: string) => sessionName(repo, 'add_apps')

  const planned = async (apps: readonly { template: string; name: string }[]): Promise<PlannedApp[]> => {
    const twice = apps.find(({ name }, at) => apps.findIndex(each => each.name === name) !== at)
    if (twice)
      refuse('invalid', `apps: expected each name once, found ${twice.name} twice`, {
        errors: [{ path: 'apps', expected: 'each name once', value: twice.name }],
      })
    const { templates: known } = await templates.all()
    return apps.map(({ template, name }) => ({
      name,
      template:
        known.find(({ key }) => key === template)
        ?? refuse('not-found', `no template is named ${template}: GET /workspace/templates lists them`),
    }))
  }

  const add = async (tree: PathTree, repo: string, apps: readonly { template: string; name: string }[]) => {
    const name = addSession(repo)
    const purpose = `apps of ${repo}: ${apps.map(app => `${app.name} (${app.template})`).join(', ')}`
    const running = (await sessionsByName(host)).get(name)
    if (running?.running) {
      if (running.purpose === purpose) return name
      refuse('conflict', `other apps are being added in the terminal ${name}: wait for them`)
    }
    const plan = await planned(apps)
    const folder = await appsFolder(tree, repo)
    await scaffold.make(tree, folder, plan)
    const projects = new Map<string, Project>()
    for (const app of plan) {
      const project = await projectOf(tree, repo, pathIn(folder, app.name))
      if (project && (await setupOf(deps, tree, project)).state !== 'ready') projects.set(project.path, project)
    }
    await startSession(host, {
      name,
      purpose,
      env: { CI: 'true' },
      label: `Add ${plan.map(app => app.name).join(', ')}`.slice(0, 80),
      steps: [
        { cwd: folder, program: ['ls', '-R', ...plan.map(app => app.name)] },
        ...[...projects.values()].flatMap(({ path, install }) =>
          install.map(program => ({ cwd: path, program: [...program] })),
        ),
      ],
    })
    publish(repo)
    return name
  }

  /** What a caller names: the repository's folder, and the app in it. */
  const needApp = async (tree: PathTree, repo: string, app: string) => {
    const path = await repoFolder(tree, repo)
    const found = await appAt(tree, app, pathIn(await appsFolder(tree, path), app))
    return { path, found: found ?? refuse('not-found', `the repository has no runnable app ${app}`) }
  }

  /** How the package in a folder of a repository is run, and what installs its dependencies if they are missing. */
  const planOf = async (
    tree: PathTree,
    repo: string,
    path: string,
    sessions: ReadonlyMap<string, WorkSession>,
  ): Promise<RunPlan> => {
    const project =
      (await projectOf(tree, repo, path)) ?? refuse('not-found', `no package is in ${path}: it has no package.json`)
    const { manager } = project
    const { state } = await setupOf(deps, tree, project)
    return {
      manager,
      present: await programs.has(manager),
      installing: installs.isQueued(project.path) || sessions.get(addSession(repo))?.running === true,
      failed: installs.hasFailed(project.path),
      steps: state === 'ready' ? [] : project.install.map(program => ({ cwd: project.path, program: [...program] })),
    }
  }

  const start = async (tree: PathTree, repo: string, found: FoundApp) => {
    const session = sessionName(repo, found.app)
    const purpose = PURPOSE + found.path
    const sessions = await sessionsByName(host)
    const known = sessions.get(session)
    if (known?.running && known.purpose === purpose)
      return {
        session,
        port: serverOfSession(known)?.port ?? known.port ?? (await freePort()),
        ...(await showApp(host, appLabel(repo, found.app), known)),
      }
    const { manager, present, installing, steps } = await planOf(tree, repo, found.path, sessions)
    if (!present) await missingProgram(manager)
    if (installing) refuse('conflict', `the dependencies of ${found.app} are being installed: wait for that`)
    const port = await freePort()
    const row = await startSession(host, {
      name: session,
      purpose,
      port,
      label: found.app,
      env: { PORT: String(port), BROWSER: 'none' },
      steps: [...steps, { cwd: found.path, program: [manager, 'run', found.script] }],
    })
    publish(found.path)
    return { session, port, ...(await showApp(host, appLabel(repo, found.app), row)) }
  }

  const summaryOf = async (repo: string, { app, path, kind }: FoundApp, sessions: ReadonlyMap<string, WorkSession>) => {
    const name = sessionName(repo, app)
    const session = sessions.get(name)
    const running = session?.running === true && session.purpose === PURPOSE + path
    const server = running ? serverOfSession(session) : undefined
    const summary: AppSummary = {
      app,
      running,
      healthy: server !== undefined && (await answeringScheme(server)) !== undefined,
      ...(kind !== undefined && { kind }),
      ...(server && { port: server.port }),
      ...(running && { session: name }),
      ...(running && (await addressOfApp(host, appLabel(repo, app)))),
    }
    return summary
  }

  return {
    'installs.plan': async ({ repo, path }) => {
      const tree = { root: host.place.workspace, reach: undefined, readsGit: false }
      return planOf(tree, repo, path, await sessionsByName(host))
    },

    'GET /workspace/templates': async () => {
      const { templates: all, ...source } = await templates.known()
      return {
        templates: all.map(({ key, label, description, kind }) => ({ key, label, description, kind })),
        ...source,
      }
    },

    'POST /workspace/repos/{repo}/apps': async ({ repo, apps }, context) => {
      const tree = await sharedTree(host, context)
      const path = await repoFolder(tree, repo)
      return { ok: true, session: await locks.with('add', () => add(tree, path, apps)) }
    },

    'GET /workspace/repos/{repo}/apps': async ({ repo }, context) => {
      const tree = await sharedTree(host, context)
      const path = await repoFolder(tree, repo)
      const sessions = await sessionsByName(host)
      return { apps: await Promise.all((await appsIn(tree, path)).map(app => summaryOf(path, app, sessions))) }
    },

    'POST /workspace/repos/{repo}/apps/{app}/start': async ({ repo, app }, context) => {
      const tree = await sharedTree(host, context)
      const { path, found } = await needApp(tree, repo, app)
      return { ok: true, ...(await locks.with(found.path, () => start(tree, path, found))) }
    },

    'POST /workspace/repos/{repo}/apps/{app}/stop': async ({ repo, app }, context) => {
      const tree = await sharedTree(host, context)
      const repoPath = await repoFolder(tree, repo)
      const path = pathIn(await appsFolder(tree, repoPath), app)
      const name = sessionName(repoPath, app)
      const session = (await sessionsByName(host)).get(name)
      // Its manifest may have changed since it was started.
      if (!session?.running || session.purpose !== PURPOSE + path) await needApp(tree, repo, app)
      else await host.call('terminals.stop', { name })
      await hideApp(host, appLabel(repoPath, app))
      publish(path)
      return { ok: true }
    },
  }
}
