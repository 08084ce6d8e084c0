import type { ScratchRepo } from '../work/scratch-repo.js'
import type { ModuleFolder } from '../contract.js'
import type { TreeChange } from '../work/tree-diff.js'

const first =
  (pattern: RegExp) =>
  (text: string): string | undefined =>
    pattern.exec(text)?.[1]

const jsonName = (text: string): string | undefined => {
  try {
    const { name } = JSON.parse(text) as { name?: unknown }
    return typeof name === 'string' && name !== '' ? name : undefined
  } catch {
    return undefined
  }
}

/** The manifest files of packages, with how to find the package's name in each. */
const MANIFESTS: { readonly [file: string]: (text: string) => string | undefined } = {
  'package.json': jsonName,
  'composer.json': jsonName,
  'deno.json': jsonName,
  'pyproject.toml': first(/^name\s*=\s*["']([^"']+)["']/m),
  'Cargo.toml': first(/^name\s*=\s*"([^"]+)"/m),
  'go.mod': first(/^module\s+(\S+)/m),
  'pom.xml': first(/<artifactId>([^<]+)<\/artifactId>/),
  'build.gradle': () => undefined,
  'build.gradle.kts': () => undefined,
  'setup.py': first(/name\s*=\s*["']([^"']+)["']/),
  Gemfile: () => undefined,
  'mix.exs': first(/app:\s*:(\w+)/),
}

const LONGEST_NAME = 200

/** The packages that contain a changed path, by the nearest manifest above it. */
export const modulesOf = async (
  scratch: ScratchRepo,
  repo: string,
  tree: string,
  changes: readonly TreeChange[],
): Promise<ModuleFolder[]> => {
  const { text } = await scratch.once(['ls-tree', '-r', '-z', '--name-only', tree])
  const manifests = new Map<string, string>()
  for (const path of text.split('\0')) {
    const cut = path.lastIndexOf('/')
    const dir = path.slice(0, Math.max(0, cut))
    if (Object.hasOwn(MANIFESTS, path.slice(cut + 1)) && !manifests.has(dir)) manifests.set(dir, path)
  }
  if (manifests.size === 0) return []
  const dirs = new Set<string>()
  for (const { path } of changes) {
    for (let dir = path; dir !== '';) {
      dir = dir.slice(0, Math.max(0, dir.lastIndexOf('/')))
      if (!manifests.has(dir)) continue
      dirs.add(dir)
      break
    }
  }
  const modules: ModuleFolder[] = []
  for (const dir of [...dirs].sort())
    modules.push({ dir, name: await nameOf(scratch, repo, tree, dir, manifests.get(dir)!) })
  return modules
}

const nameOf = async (
  scratch: ScratchRepo,
  repo: string,
  tree: string,
  dir: string,
  manifest: string,
): Promise<string> => {
  const read = MANIFESTS[manifest.slice(dir === '' ? 0 : dir.length + 1)]!
  const { code, text } = await scratch.once(['cat-file', 'blob', `${tree}:${manifest}`], { ok: [0, 128] })
  return ((code === 0 ? read(text) : undefined) ?? (dir.split('/').at(-1) || repo)).slice(0, LONGEST_NAME)
}
