import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { openFile, openPath, type PathTree } from '../../sdk/node/files/open-path.js'
import type { Panel } from './contract.js'

/** What the files of a repository say about it. */
export type PanelFacts = Pick<
  Panel,
  'hasPanel' | 'role' | 'deployConfig' | 'desiredState' | 'directoryUi' | 'monorepo' | 'vitest' | 'userStories' | 'docs'
>

interface PackageManifest {
  readonly scripts?: { readonly dev?: unknown }
  readonly workspaces?: unknown
  readonly dependencies?: object
  readonly devDependencies?: object
}

const MOST = 1024 * 1024
/** How a repository is deployed, by the names that tools look for. */
const DEPLOYS = [
  /^(?:dockerfile|procfile|(?:docker-)?compose\.ya?ml|vercel\.json|(?:render|app)\.yaml)$/i,
  /^(?:(?:fly|netlify|wrangler)\.toml|k8s|helm|terraform|deploy)$/i,
]
const PACKAGES = /^(?:pnpm-workspace\.yaml|lerna\.json|nx\.json|turbo\.json)$/

const below = (folder: string, name: string): string => (folder === '.' ? name : `${folder}/${name}`)

const manifestIn = async (tree: PathTree, folder: string): Promise<PackageManifest | undefined> => {
  const path = below(folder, 'package.json')
  try {
    await using found = await openPath(tree, path)
    if (!found?.stats.isFile() || found.stats.size > MOST) return undefined
    await using handle = await openFile(found, path)
    const value = JSON.parse((await handle!.readFile('utf8')).replace(/^\ufeff/, '')) as unknown
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

const hasDev = (manifest: PackageManifest | undefined): boolean =>
  typeof manifest?.scripts?.dev === 'string' && manifest.scripts.dev.trim() !== ''

const operatorOf = (repo: string): string => below(repo, 'operator')

/** The folder whose `dev` script is the development server of a repository; undefined: it has none. */
export const panelFolder = async (tree: PathTree, repo: string): Promise<string | undefined> => {
  for (const folder of [operatorOf(repo), repo]) if (hasDev(await manifestIn(tree, folder))) return folder
  return undefined
}

/** Reads what a repository holds; its path is a real one. */
export const panelFactsOf = async (tree: PathTree, repo: string): Promise<PanelFacts> => {
  const entries = await readdir(join(tree.root, repo), { withFileTypes: true }).catch(() => [])
  const folders = new Set(entries.flatMap(entry => (entry.isDirectory() ? [entry.name] : [])))
  const names = entries.map(({ name }) => name)
  const manifest = await manifestIn(tree, repo)
  const uses = Object.keys({ ...manifest?.dependencies, ...manifest?.devDependencies })
  const hasPanel = hasDev(manifest) || hasDev(await manifestIn(tree, operatorOf(repo)))
  const desiredState = folders.has('desired-state')
  const role = desiredState
    ? 'desired-state'
    : folders.has('intent') || names.includes('intent.md')
      ? 'intent'
      : hasPanel
        ? 'app'
        : undefined
  return {
    hasPanel,
    ...(role && { role }),
    deployConfig: names.some(name => DEPLOYS.some(each => each.test(name))),
    desiredState,
    directoryUi: folders.has('directory-ui'),
    monorepo: manifest?.workspaces !== undefined || names.some(name => PACKAGES.test(name)),
    vitest: uses.includes('vitest') || names.some(name => /^vitest\.config\.\w+$/.test(name)),
    userStories: folders.has('user-stories'),
    docs: folders.has('docs'),
  }
}
