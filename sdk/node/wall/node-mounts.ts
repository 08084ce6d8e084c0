import { lstatSync, readFileSync, readdirSync, readlinkSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Mount } from './spec.js'
import { isOfSystem } from './system.js'

const WHY = 'the Node program'
/** Where a program names its loader, and libraries are looked for. */
const LINKED = ['/lib', '/lib32', '/lib64', '/libx32']
const CACHE = '/etc/ld.so.cache'
/** Below it device and process entries are mapped too. */
const LIBRARY = /\.so(?:\.[\w.-]+)?$/

/** The system's libraries that this process has loaded, by real path: Node needs the same in another process. */
const loaded = (): string[] => {
  const mapped = readFileSync('/proc/self/maps', 'utf8')
    .split('\n')
    .flatMap(line => /\s(\/.*)$/.exec(line)?.[1] ?? [])
  return [...new Set(mapped)].filter(path => LIBRARY.test(path) && isOfSystem(path))
}

/** Every name of a library in its own folder, by which others ask for it. */
const namesOf = (library: string, folders: Map<string, string[]>): string[] => {
  const folder = dirname(library)
  const names = folders.get(folder) ?? readdirSync(folder).filter(name => LIBRARY.test(name))
  folders.set(folder, names)
  return names
    .map(name => join(folder, name))
    .filter(path => {
      try {
        return lstatSync(path).isSymbolicLink() && realpathSync(path) === library
      } catch {
        return false
      }
    })
}

/** The folders of the system's libraries. */
export const libraryFolders = (): string[] => [...new Set(loaded().map(path => dirname(path)))]

let known: readonly Mount[] | undefined

/** Where the Node program is in a tight wall. */
export const NODE = '/runtime/node'

/** Mounts with which the Node program of this process runs in an otherwise empty root, read-only. */
export const nodeMounts = (): readonly Mount[] => {
  if (known) return known
  const folders = new Map<string, string[]>()
  const libraries = loaded()
  const mounts: Mount[] = [['show', realpathSync(process.execPath), NODE, WHY]]
  for (const path of LINKED) {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found?.isSymbolicLink()) mounts.push(['link', readlinkSync(path), path, WHY])
    if (found === undefined) continue
    // The loader, as programs name it.
    for (const name of readdirSync(path).filter(entry => entry.startsWith('ld-'))) {
      const named = join(realpathSync(path), name)
      const real = realpathSync(named)
      if (libraries.includes(real)) mounts.push(['show', real, named, WHY])
    }
  }
  for (const library of libraries)
    for (const path of [library, ...namesOf(library, folders)]) mounts.push(['show', library, path, WHY])
  if (lstatSync(CACHE, { throwIfNoEntry: false })?.isFile()) mounts.push(['show', CACHE, CACHE, WHY])
  const seen = new Set<string>()
  return (known = mounts.filter(([, , to]) => !seen.has(to) && seen.add(to)))
}
