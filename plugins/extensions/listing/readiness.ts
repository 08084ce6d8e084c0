import { realpath } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { plainBytes } from '../../../sdk/node/files/real-folders.js'
import { git } from '../../../sdk/node/programs/git.js'
import { hasBelow } from '../../../sdk/node/transport/code-folder.js'
import { HOST_API_VERSION } from '../manifest/engines.js'
import { foreignImports, bundleImports } from './bundle-imports.js'
import type { LoadedExtension } from './catalog.js'
import type { ReadinessCheck } from './contract.js'
import { declaredEntries } from './listing.js'
import type { LoadedExtensions } from './loaded-extensions.js'
import { codeText, withoutTypes } from './page-code.js'
import { problemsOf } from './problems.js'
import { wrongSchema } from './tool-schema.js'
import { everyGitdir } from '../../../sdk/node/wall/gitdirs.js'

const MOST_SEARCHED = 1024 * 1024
const MOST_SEARCHED_ALL = 64 * 1024 * 1024
const LEAST_SECRET = 8
const GIT_MS = 20_000

type Found = readonly [status: ReadinessCheck['status'], detail: string]

/** Whether others could run an extension, by its files and its use. */
export const readinessOf = async (all: LoadedExtensions, id: string): Promise<ReadinessCheck[]> => {
  if (all.isBuiltin(id))
    return [{ id: 'manifest', label: LABELS.manifest, status: 'pass', detail: 'it ships with the sandbox' }]
  await all.refresh()
  const found = all.get(id)
  const checks: Record<ReadinessCheck['id'], Found> = {
    manifest: await manifestCheck(all, found),
    files: filesCheck(found),
    bundle: await bundleCheck(found),
    server: await serverCheck(all, found),
    engines: found.compatible
      ? ['pass', found.engines === undefined ? 'it runs on any host' : `${found.engines} admits ${HOST_API_VERSION}`]
      : ['fail', `${found.engines} does not admit ${HOST_API_VERSION}`],
    permissions: permissionsCheck(all, found),
    tools: toolsCheck(found),
    secrets: await secretsCheck(all, found),
    version: versionCheck(all, found),
    git: await gitCheck(all, found),
  }
  return Object.entries(checks).map(([check, [status, detail]]) => {
    const name = check as ReadinessCheck['id']
    return { id: name, label: LABELS[name], status, detail }
  })
}

const LABELS: { readonly [id in ReadinessCheck['id']]: string } = {
  manifest: 'The manifest can be honoured',
  files: 'Every promised file is there',
  bundle: 'The page is one file',
  server: 'The backend is one file',
  engines: 'It runs on this host',
  permissions: 'What it declares is used',
  tools: 'The inputs of its tools are valid',
  secrets: 'No stored secret is in its files',
  version: 'It has a new version',
  git: 'Everything is committed',
}

const manifestCheck = async (all: LoadedExtensions, found: LoadedExtension): Promise<Found> => {
  const problems = [...(await problemsOf(found, { routes: all.routes, earlier: [] })), ...all.backendProblems(found.id)]
  return problems.length > 0 ? ['warn', problems.slice(0, 5).join('; ')] : ['pass', 'it has no problem']
}

const filesCheck = ({ manifest, folder }: LoadedExtension): Found => {
  const { entry, server, contributes = {} } = manifest
  const { environment, capabilities = [] } = contributes
  const files = [entry, server, environment?.fragment, ...capabilities.flatMap(card => [card.skill, card.fragment])]
  const folders = [contributes.agent?.path, contributes.bin]
  const missing = [
    ...files.filter(path => path !== undefined && !folder.files.has(path)),
    ...folders.filter(path => path !== undefined && !hasBelow(folder, path)),
  ]
  return missing.length > 0 ? ['fail', `missing: ${missing.join(', ')}`] : ['pass', `${folder.files.size} files`]
}

/** The code of a file without its types; undefined: it cannot be read, or holds what is not erasable. */
const runText = async (found: LoadedExtension, path: string): Promise<string | undefined> => {
  const text = await codeText(found, path)
  try {
    return text === undefined ? undefined : withoutTypes(path, text)
  } catch {
    return undefined
  }
}

const bundleCheck = async (found: LoadedExtension): Promise<Found> => {
  const { entry } = found.manifest
  if (entry === undefined) return ['pass', 'it has no page']
  const text = await runText(found, entry)
  if (text === undefined) return ['fail', `${entry} cannot be read`]
  const imports = bundleImports(text)
  return imports.length > 0
    ? ['fail', `${entry} imports ${imports.slice(0, 5).join(', ')}: bundle it into one file`]
    : ['pass', `${entry} imports nothing`]
}

const serverCheck = async (all: LoadedExtensions, found: LoadedExtension): Promise<Found> => {
  const { server } = found.manifest
  if (server === undefined) return ['pass', 'it has no backend']
  const text = await runText(found, server)
  if (text === undefined) return ['fail', `${server} cannot be read`]
  const imports = foreignImports(text)
  if (imports.length > 0)
    return ['fail', `${server} imports ${imports.slice(0, 5).join(', ')}: bundle it into one file`]
  const backend = all.backendOf(found)
  if (backend?.state === 'running') return ['pass', `${server} runs`]
  if (backend?.state === 'error') return ['fail', backend.detail ?? 'it does not start']
  return ['warn', `${server} imports nothing foreign, but does not run now: ${backend?.detail ?? 'it is stopped'}`]
}

const permissionsCheck = (all: LoadedExtensions, found: LoadedExtension): Found => {
  const declared = declaredEntries(found)
  const used = all.usage.of(found.id, declared)
  const unused = [...declared].filter(entry => !Object.hasOwn(used, entry))
  return unused.length > 0
    ? ['warn', `never used: ${unused.slice(0, 10).join(', ')}`]
    : ['pass', declared.size === 0 ? 'it declares none' : 'each was used']
}

const toolsCheck = ({ manifest }: LoadedExtension): Found => {
  const tools = manifest.contributes?.tools ?? []
  for (const { name, input } of tools) {
    const wrong = wrongSchema(input)
    if (wrong !== undefined) return ['fail', `the input of ${name}: ${wrong}`]
  }
  return ['pass', tools.length === 0 ? 'it has none' : `${tools.length} tools`]
}

const secretsCheck = async (all: LoadedExtensions, { dir, folder }: LoadedExtension): Promise<Found> => {
  if (!(await all.host.serves('secrets.values'))) return ['pass', 'no secret is stored']
  const { values } = await all.host.call('secrets.values')
  const needles = values.filter(({ value }) => value.length >= LEAST_SECRET)
  let left = MOST_SEARCHED_ALL
  for (const [path, { size }] of folder.files) {
    if (size > MOST_SEARCHED || (left -= size) < 0) return ['warn', `${path} is too large to be searched`]
    const bytes = await plainBytes(join(dir, path), MOST_SEARCHED)
    const found = bytes && needles.find(({ value }) => bytes.includes(value))
    if (found) return ['fail', `${path} holds the value of the secret ${found.name}`]
  }
  return ['pass', 'none was found']
}

const versionCheck = (all: LoadedExtensions, { id, manifest, version }: LoadedExtension): Found => {
  if (manifest.version === undefined) return ['warn', 'the manifest has no version']
  const { installed } = all.kept.get(id) ?? {}
  if (!installed?.update) return ['pass', `${version}; no registry lists another one`]
  return ['warn', `${version}; ${installed.update.registry} lists ${installed.update.version ?? installed.update.ref}`]
}

const gitCheck = async (all: LoadedExtensions, { source, dir }: LoadedExtension): Promise<Found> => {
  if (source === 'installed') return ['pass', 'it was installed from a commit']
  const { workspace, data, hidden, grants } = all.host.place
  const root = await realpath(workspace)
  const path = relative(root, dir)
  try {
    const exposed = await everyGitdir(data)
    const wall = { workspace: root, data, hide: hidden, grants, exposed, sealed: true, offline: true }
    const args = ['status', '--porcelain', '--untracked-files=all', '--ignored=matching', '--', path]
    const { text } = await git(root, args, { wall, timeoutMs: GIT_MS, env: { GIT_LITERAL_PATHSPECS: '1' } })
    const lines = text.split('\n').filter(Boolean)
    return lines.length > 0
      ? ['warn', `not committed: ${lines.length} files`]
      : ['pass', 'its folder is a clean commit']
  } catch (error) {
    all.host.log.info('asking git for the state of an extension failed', { path, error: String(error) })
    return ['warn', 'its folder is in no repository that git can read']
  }
}
