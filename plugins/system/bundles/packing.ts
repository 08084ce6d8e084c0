import { lstat, mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { flushFolder } from '../../../sdk/node/files/files.js'
import type { BundlePart } from './contract.js'
import { BundleArchive, type Progress } from './archive.js'
import { historyFile, historyName, packHistory } from './histories.js'
import { IN, type BundleManifest, type BundleRepository } from './manifest.js'
import type { FoundFile, FoundRepository } from './workspace-files.js'

/** The contents of a backup. */
export interface Contents {
  readonly workspace: string
  readonly data: string
  readonly files: readonly FoundFile[]
  readonly repositories: readonly FoundRepository[]
  /** Absent: the whole workspace and the groups' parts; else only these repositories. */
  readonly whole: boolean
  readonly secrets: boolean
  readonly from: BundleManifest['from']
  /** Only what changed since then. */
  readonly since?: number
}

/** How to pack a backup. */
export interface Packing {
  /** The folder of its temporary files, removed at the end. */
  readonly folder: string
  /** Its final path. */
  readonly to: string
  readonly passphrase?: string
  /** The parts of the groups, as they are now. */
  readonly parts: () => Promise<readonly BundlePart[]>
  readonly progress: Progress
  readonly signal: AbortSignal
}

/** Packs a backup and returns its size; the file gets its name when it is complete. */
export const pack = async (
  contents: Contents,
  { folder, to, passphrase, parts, progress, signal }: Packing,
): Promise<number> => {
  const { workspace, data, files, since = 0, whole, secrets, from } = contents
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true, mode: 0o700 })
  try {
    const archive = await BundleArchive.begin(folder, signal, progress)
    // Conversations before commits, so that the histories hold every commit that a conversation names.
    const handed = whole ? await parts() : []
    for (const { group, files: own } of handed) {
      for (const { name, path, at = Infinity } of own)
        if (at >= since) await archive.add(`${IN.state}${group}/${name}`, data, path)
    }
    failpoint('bundle.parts')
    const repositories: BundleRepository[] = []
    for (const [at, found] of contents.repositories.entries()) {
      const file = historyFile(folder, at)
      const { bytes: _bytes, history, ...stands } = await packHistory(found, file, signal)
      const entry = `${IN.history}${historyName(at)}`
      if (history !== undefined) await archive.add(entry, folder, file)
      repositories.push({ ...stands, ...(history !== undefined && { history: entry }) })
      await rm(file, { force: true })
    }
    for (const { path, link } of files) {
      if (link === undefined) await archive.add(`${IN.workspace}${path}`, workspace, join(workspace, path))
      else await archive.link(`${IN.workspace}${path}`, link)
    }
    const groups = handed.map(({ group, version }) => ({ group, version }))
    const manifest: BundleManifest = {
      format: 'sandbox-bundle',
      version: 1,
      from,
      whole,
      secrets,
      repositories,
      groups,
      entries: archive.entries,
    }
    const half = join(folder, 'whole')
    const size = await archive.end(manifest, half, passphrase)
    failpoint('bundle.written')
    await rename(half, to)
    await flushFolder(join(to, '..'))
    failpoint('bundle.named')
    return size
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** About how many bytes there are to pack. */
export const weighBundle = async (
  files: readonly FoundFile[],
  repositories: readonly FoundRepository[],
  sizeOf: (folder: string) => Promise<number>,
): Promise<number> => {
  const histories = await Promise.all(
    repositories.map(async ({ dir }) => {
      const objects = join(dir, '.git', 'objects')
      return (await lstat(objects).catch(() => undefined))?.isDirectory() ? sizeOf(objects) : 0
    }),
  )
  return files.reduce((sum, { size }) => sum + size, 0) + histories.reduce((sum, size) => sum + size, 0)
}
