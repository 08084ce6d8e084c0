import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { folderHash, hasBelow, readCodeFolder, type CodeFolder } from '../../../sdk/node/transport/code-folder.js'
import { MANIFEST_FILE, readExtension, type ParsedExtension } from '../manifest/parse.js'
import type { ExtensionPower } from '../powers/power.js'
import { declaredPowers } from '../powers/powers.js'
import type { KeptExtensions } from '../records/extension-records.js'
import { workspaceFolder, workspaceFolders, WORKSPACE_FOLDER } from './workspace-folder.js'

/** An extension whose manifest can be used. */
export interface LoadedExtension extends ParsedExtension {
  readonly source: 'installed' | 'workspace'
  /** Its code: a real path. */
  readonly dir: string
  /** Its folder, as people know it. */
  readonly shown: string
  readonly folder: CodeFolder
  /** The shown commit. */
  readonly commit: string
  /** Changes with its code. */
  readonly revision: string
  readonly powers: readonly ExtensionPower[]
}

interface FoundFolder {
  readonly folder: CodeFolder
  readonly stamp: string
  readonly loaded?: LoadedExtension
  readonly error?: string
}

export interface CatalogDeps {
  readonly workspace: string
  /** The folder of the code of installed extensions. */
  readonly code: string
  /** The folder of the copies that installed extensions run from: `<id>/<revision>/`. */
  readonly dev: string
  readonly kept: Pick<KeptExtensions, 'get'>
}

/** The agent folder's files that run automatically. */
export const AGENT_HOOKS = ['hooks', '.mcp.json'] as const

/** The extensions on the disk: those of the workspace and installed ones. */
export class ExtensionCatalog {
  readonly #deps: CatalogDeps
  readonly #workspace = new Map<string, FoundFolder>()
  readonly #installed = new Map<string, FoundFolder>()
  #loaded = new Map<string, LoadedExtension>()
  #invalid: { dir: string; error: string }[] = []

  constructor(deps: CatalogDeps) {
    this.#deps = deps
  }

  /** Everything that can be used, by id. */
  get loaded(): ReadonlyMap<string, LoadedExtension> {
    return this.#loaded
  }

  get invalid(): readonly { readonly dir: string; readonly error: string }[] {
    return this.#invalid
  }

  /** Whether a folder of the workspace is there and cannot be used as it is now. */
  isUnusable(name: string): boolean {
    const found = this.#workspace.get(name)
    return found !== undefined && !found.loaded
  }

  /** Reads folders of the workspace again; without names all of them, and those that are new. */
  async rescan(names?: ReadonlySet<string>): Promise<void> {
    const { workspace } = this.#deps
    const there = await workspaceFolders(workspace)
    for (const name of [...this.#workspace.keys()]) if (!there.includes(name)) this.#workspace.delete(name)
    for (const name of there)
      if (!names || names.has('') || names.has(name) || !this.#workspace.has(name)) await this.#scan(name)
    this.#resolve()
  }

  /** Reads the folders again that are new, were removed, or whose manifest changed. */
  async refresh(): Promise<void> {
    const there = await workspaceFolders(this.#deps.workspace)
    const changed = new Set<string>()
    for (const name of there) {
      const dir = await workspaceFolder(this.#deps.workspace, name)
      if (dir === undefined || (await stampOf(dir)) !== this.#workspace.get(name)?.stamp) changed.add(name)
    }
    if (changed.size > 0 || there.length !== this.#workspace.size) await this.rescan(changed)
  }

  /** Reads one installed extension again, after its record changed. */
  async reload(id: string): Promise<void> {
    const { kept, code, dev: copies } = this.#deps
    const record = kept.get(id)
    this.#installed.delete(id)
    if (record?.installed && !record.removing) {
      const { path = '', url, current, dev } = record.installed
      const dir = dev ? join(copies, id, dev.revision) : join(code, id, current.ref, path)
      const found = await readFolder(dir, {
        ...{ named: nameOfSource(url, path), source: 'installed', shown: `${id} at ${current.ref.slice(0, 12)}` },
        commit: current.ref,
        revision: dev?.revision ?? current.ref,
      })
      this.#installed.set(id, found.loaded && found.loaded.id !== id ? { ...found, ...otherId(id) } : found)
    }
    this.#resolve()
  }

  async #scan(name: string): Promise<void> {
    const dir = await workspaceFolder(this.#deps.workspace, name)
    if (dir === undefined) return void this.#workspace.delete(name)
    const before = this.#workspace.get(name)?.folder
    const shown = `${WORKSPACE_FOLDER}/${name}`
    this.#workspace.set(name, await readFolder(dir, { named: name, source: 'workspace', shown }, before))
  }

  /**
   * Loads each id once: an installed extension before one of the workspace, then the folder whose powers were approved,
   * then the one that came first.
   */
  #resolve(): void {
    const loaded = new Map<string, LoadedExtension>()
    const invalid: { dir: string; error: string }[] = []
    const add = (dir: string, { loaded: found, error }: FoundFolder): void => {
      if (!found) return void invalid.push({ dir, error: error ?? 'it cannot be read' })
      const other = loaded.get(found.id)
      if (other) invalid.push({ dir, error: `its id ${found.id} is that of ${other.shown}` })
      else loaded.set(found.id, found)
    }
    for (const [id, found] of [...this.#installed].sort(byKey)) add(id, found)
    const isNew = ({ loaded: found }: FoundFolder) => Number(!found || this.#loaded.get(found.id)?.dir !== found.dir)
    const rank = ([name, found]: readonly [string, FoundFolder]) =>
      this.#deps.kept.get(found.loaded?.id ?? '')?.folder === name ? -1 : isNew(found)
    for (const [name, found] of [...this.#workspace].sort(byKey).sort((one, other) => rank(one) - rank(other)))
      add(`${WORKSPACE_FOLDER}/${name}`, found)
    this.#loaded = loaded
    this.#invalid = invalid
  }
}

const byKey = ([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number => (one < other ? -1 : 1)

const otherId = (id: string) => ({ loaded: undefined, error: `its manifest is not that of ${id}` })

/** The manifest's time and size: when they change, the folder is read again. */
const stampOf = async (dir: string): Promise<string> => {
  const found = await stat(join(dir, MANIFEST_FILE), { bigint: true }).catch(() => undefined)
  return found ? `${found.ino} ${found.size} ${found.mtimeNs}` : ''
}

interface FolderAsked {
  readonly named: string
  readonly source: LoadedExtension['source']
  readonly shown: string
  readonly commit?: string
  readonly revision?: string
}

const readFolder = async (
  dir: string,
  { named, source, shown, commit, revision }: FolderAsked,
  before?: CodeFolder,
): Promise<FoundFolder> => {
  const stamp = await stampOf(dir)
  const folder = await readCodeFolder(dir, {
    ...(before && { before }),
    // Packages that an author's tests and types need are not part of the extension.
    ...(revision === undefined && { without: NODE_MODULES }),
    hashed: revision === undefined,
  })
  if (folder.wrong !== undefined) return { folder, stamp, error: folder.wrong }
  const parsed = await readExtension(dir, named)
  if ('error' in parsed) return { folder, stamp, error: parsed.error }
  const hash = revision ?? folderHash(folder)
  const powers = powersIn(parsed, folder)
  const how = { commit: commit ?? hash.slice(0, 12), revision: hash, powers }
  return { folder, stamp, loaded: { ...parsed, source, dir, shown, folder, ...how } }
}

/** The powers of an extension, including those of its agent folder. */
export const powersIn = (
  { manifest, compatible }: Pick<ParsedExtension, 'manifest' | 'compatible'>,
  folder: Pick<CodeFolder, 'files'>,
): ExtensionPower[] => {
  const { agent } = manifest.contributes ?? {}
  const root = agent?.path === undefined || agent.path === '.' ? '' : `${agent.path}/`
  const hooks = AGENT_HOOKS.some(name => folder.files.has(root + name) || hasBelow(folder, root + name))
  return compatible ? declaredPowers(manifest, { hooks }) : []
}

const NODE_MODULES: ReadonlySet<string> = new Set(['node_modules'])

/** The name that a manifest without one gets: the last part of its path, or of its address. */
export const nameOfSource = (url: string, path = ''): string =>
  (path === '' || path === '.' ? url.replace(/\/+$/, '').replace(/\.git$/, '') : path).split(/[/:]/).at(-1)!
