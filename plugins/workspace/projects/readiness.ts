import { createHash } from 'node:crypto'
import type { PathTree } from '../../../sdk/node/files/open-path.js'
import { openPath } from '../../../sdk/node/files/open-path.js'
import { keysAt, manifestAt, manifestText, manifestValue, pythonName } from '../repositories/manifests.js'
import { pathIn } from '../tree/ignore-rules.js'
import { namesOfFolder } from '../tree/sweep.js'
import type { SetupState } from './contract.js'
import type { Project } from './projects.js'

/** What the disk says of a project's dependencies. */
export interface Readiness {
  readonly state: Extract<SetupState, 'ready' | 'needs-setup' | 'stale'>
  readonly missing?: number
}

const MOST_CHECKED = 5_000
/** A package manager writes its lock file and its own notes within this time of each other. */
const TOGETHER_MS = 2_000

const isThere = async (tree: PathTree, path: string): Promise<boolean> => {
  const found = await openPath(tree, path).catch(() => undefined)
  await found?.close()
  return found !== undefined
}

const changedAt = async (tree: PathTree, path: string): Promise<number | undefined> => {
  const found = await openPath(tree, path).catch(() => undefined)
  await found?.close()
  return found?.stats.mtimeMs
}

/** The digest of the files that decide what is installed. */
export const installDigest = async (tree: PathTree, { path, files }: Project): Promise<string> => {
  const hash = createHash('sha256')
  for (const file of files) hash.update(`${file}\0${(await manifestText(tree, pathIn(path, file))) ?? ''}\0`)
  return hash.digest('hex')
}

/** Whether a package resolves from a folder, looked for upwards to the project's own (node, modules). */
const resolves = async (tree: PathTree, project: string, from: string, name: string): Promise<boolean> => {
  for (let at = from; ; at = at.includes('/') ? at.slice(0, at.lastIndexOf('/')) : '.') {
    if (await isThere(tree, pathIn(at, `node_modules/${name}/package.json`))) return true
    if (at === project || at === '.') return false
  }
}

/** How many packages of npm's lock file are not there as it says, by the note that npm leaves in `node_modules`. */
const unlike = async (tree: PathTree, path: string, lock: string): Promise<number> => {
  const read = async (file: string) =>
    (await manifestValue('lock.json', await manifestText(tree, pathIn(path, file)))) as {
      packages?: { [at: string]: { version?: string; optional?: boolean; peer?: boolean } }
    }
  const [asked, installed] = [await read(lock), await read('node_modules/.package-lock.json')]
  if (!asked?.packages || !installed?.packages) return 0
  return Object.entries(asked.packages).filter(
    ([at, { version, optional, peer }]) =>
      at.startsWith('node_modules/')
      && optional !== true
      && peer !== true
      && installed.packages![at]?.version !== version,
  ).length
}

const MARKS: { readonly [manager: string]: readonly string[] } = {
  pnpm: ['node_modules/.modules.yaml'],
  yarn: ['node_modules/.yarn-integrity', 'node_modules/.yarn-state.yml'],
}

const nodeReadiness = async (tree: PathTree, project: Project): Promise<Readiness> => {
  const { path, members, evidence, manager } = project
  const declared: (readonly [folder: string, name: string])[] = []
  for (const folder of [path, ...members]) {
    const manifest = await manifestValue('package.json', await manifestText(tree, pathIn(folder, 'package.json')))
    const optional = new Set(keysAt(manifest, 'optionalDependencies'))
    for (const name of [...keysAt(manifest, 'dependencies'), ...keysAt(manifest, 'devDependencies')])
      if (!optional.has(name)) declared.push([folder, name])
  }
  if (declared.length === 0) return { state: 'ready' }
  // Plug'n'Play keeps packages in archives, which only yarn looks into.
  if (await isThere(tree, pathIn(path, '.pnp.cjs'))) return { state: 'ready' }
  let missing = 0
  for (const [folder, name] of declared.slice(0, MOST_CHECKED))
    if (!(await resolves(tree, path, folder, name))) missing++
  if (!(await isThere(tree, pathIn(path, 'node_modules')))) return { state: 'needs-setup', missing }
  if (missing > 0) return { state: 'stale', missing }
  if (manager === 'npm' && evidence.endsWith('.json') && (await unlike(tree, path, evidence)) > 0)
    return { state: 'stale' }
  const marks = await Promise.all((MARKS[manager] ?? []).map(mark => changedAt(tree, pathIn(path, mark))))
  const mark = marks.find(each => each !== undefined)
  const locked = await changedAt(tree, pathIn(path, evidence))
  const stale = mark !== undefined && locked !== undefined && evidence !== 'package.json' && locked > mark + TOGETHER_MS
  return { state: stale ? 'stale' : 'ready' }
}

/** The names that a file of requirements asks for here; those of other machines and those without a name left out. */
const requirementsIn = (text: string): string[] =>
  text.split('\n').flatMap(line => {
    const plain = line.replace(/(^|\s)#.*/, '').trim()
    return plain === '' || plain.startsWith('-') || /[;/]/.test(plain) ? [] : [pythonName(plain)].filter(Boolean)
  })

const pythonReadiness = async (tree: PathTree, { path, evidence }: Project): Promise<Readiness> => {
  const requirements = await manifestText(tree, pathIn(path, 'requirements.txt'))
  const declared =
    evidence === 'requirements.txt'
      ? requirementsIn(requirements ?? '')
      : ((await manifestAt(tree, path, 'pyproject.toml'))?.uses.prod ?? [])
  const venv = (await isThere(tree, pathIn(path, '.venv'))) ? '.venv' : 'venv'
  const lib = pathIn(path, `${venv}/lib`)
  const python = namesOfFolder(tree.root, lib).find(({ name }) => name.toString().startsWith('python3'))
  if (!python) return { state: 'needs-setup', ...(declared.length > 0 && { missing: declared.length }) }
  const installed = new Set(
    namesOfFolder(tree.root, `${lib}/${python.name.toString()}/site-packages`).flatMap(({ name }) => {
      const found = /^(.+?)-[^-]+\.(?:dist|egg)-info$/.exec(name.toString())
      return found ? [pythonName(found[1]!)] : []
    }),
  )
  const missing = declared.filter(name => !installed.has(name)).length
  return missing > 0 ? { state: 'stale', missing } : { state: 'ready' }
}

const NOTHING_DECLARED = { go: 'go.mod', rust: 'Cargo.toml' } as const

/** Whether the dependencies of a project are installed; `done` is the digest of what was last installed here. */
export const dependencyState = async (
  tree: PathTree,
  project: Project,
  done: string | undefined,
): Promise<Readiness> => {
  const { ecosystem, path } = project
  if (ecosystem === 'node') return nodeReadiness(tree, project)
  if (ecosystem === 'python') return pythonReadiness(tree, project)
  if (ecosystem === 'go' || ecosystem === 'rust') {
    const manifest = await manifestAt(tree, path, NOTHING_DECLARED[ecosystem])
    const declares = manifest && [...manifest.uses.prod, ...manifest.uses.dev].length > 0
    if (!declares && project.members.length === 0 && manifest?.members === undefined && manifest)
      return { state: 'ready' }
  }
  if (ecosystem === 'php' && (await isThere(tree, pathIn(path, 'vendor/composer/installed.json'))))
    return done === undefined || done === (await installDigest(tree, project)) ? { state: 'ready' } : { state: 'stale' }
  // Their packages are in caches of the machine, not in the folder: what was installed from here is remembered.
  if (done === undefined) return { state: 'needs-setup' }
  return { state: done === (await installDigest(tree, project)) ? 'ready' : 'stale' }
}
