import { lstatSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { BundleAsset, BundleSize } from '../contract.js'
import { filesBelow } from './walk-files.js'

/** Where builds lie, the first one counts. */
const FOLDERS = ['dist', 'build', 'out', '.next/static', '.output/public', 'public/build']
/** Where the packages of a repository lie. */
const PACKAGES = ['apps', 'packages', 'operator', 'web', 'frontend', 'client']
const LEFT_OUT = /\.(?:map|tsbuildinfo|d\.[cm]?ts)$/
const MOST_FILES = 20_000
const MOST_BYTES = 64 * 1024 * 1024
const MOST_ASSETS = 30

const isFolder = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

/** The folders in which a build is looked for. */
const placesIn = (root: string): string[] => {
  const inside = PACKAGES.filter(name => isFolder(join(root, name))).flatMap(name => [
    name,
    ...readdirSync(join(root, name)).map(each => `${name}/${each}`),
  ])
  return ['', ...inside.sort()].flatMap(place => FOLDERS.map(name => (place === '' ? name : `${place}/${name}`)))
}

/** The size of the build of a repository; undefined: it has none. */
export const bundleIn = (root: string): BundleSize | undefined => {
  for (const dir of placesIn(root)) {
    if (!isFolder(join(root, dir))) continue
    const files = filesBelow(join(root, dir), MOST_FILES).filter(path => !LEFT_OUT.test(path))
    if (files.length === 0) continue
    const assets = files.map((path): BundleAsset => {
      const at = join(root, dir, path)
      const bytes = statSync(at).size
      // What is larger is no asset of a page, and hardly gets smaller.
      return { path, bytes, gzip: bytes > MOST_BYTES ? bytes : gzipSync(readFileSync(at)).length }
    })
    const sum = (of: (asset: BundleAsset) => number) => assets.reduce((all, asset) => all + of(asset), 0)
    return {
      dir,
      totalBytes: sum(({ bytes }) => bytes),
      totalGzip: sum(({ gzip }) => gzip),
      assets: assets.toSorted((one, other) => other.bytes - one.bytes).slice(0, MOST_ASSETS),
    }
  }
  return undefined
}

/** Where a build is looked for, for a message. */
export const buildFolders = FOLDERS.join(', ')
