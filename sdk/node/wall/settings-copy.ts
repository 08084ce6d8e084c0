import { createHash, randomUUID } from 'node:crypto'
import { lstatSync, mkdirSync, readdirSync, readlinkSync, symlinkSync, writeFileSync, type Stats } from 'node:fs'
import { lstat, mkdir, readdir, rename, rm, utimes } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { copyItselfSync } from '../files/in-folder.js'
import { contains } from '../files/paths.js'
import { ignored } from '../../ignored.js'
import { NOTES } from './sources.js'

const SETTINGS = '/etc'
/** Where the copies are, in the folder of files that are shown inside walls. */
export const COPIES = 'settings'
/** Whether a name is that of a copy that is being made, or that was not whole. */
export const isUnfinishedCopy = (name: string): boolean => /^\.(?:new|old)-/.test(name)

/** Copies that are kept: a wall that runs still shows the one it began with. */
const MOST_COPIES = 16
/** Larger ones are databases of single programs. */
const LARGEST = 64 * 1024 * 1024

/** How long a scan is cached, for its folders and its files. */
const FOLDERS_MS = 1_000
const FILES_MS = 60_000

const READ_BY_OTHERS = 0o004
const ENTERED_BY_OTHERS = 0o005

interface Entry {
  readonly path: string
  readonly kind: 'folder' | 'file' | 'link' | 'place'
  readonly target?: string
  readonly executable?: boolean
  /** Bytes of a file. */
  readonly size?: number
}

/** What all users may read of `/etc`, and when that was found. */
interface Scan {
  readonly entries: readonly Entry[]
  /** The change time of each folder. */
  readonly folders: ReadonlyMap<string, number>
  readonly digest: string
  readonly scannedAt: number
  checkedAt: number
}

interface Known {
  readonly scan: Scan
  readonly copy: string
}

const known = new Map<string, Known>()

const changedAt = (path: string): number => lstatSync(path, { throwIfNoEntry: false })?.ctimeMs ?? 0

/** An empty file or folder for what is mounted there, and the folders around it. */
const placesFor = async (paths: readonly string[], found: readonly Entry[]): Promise<Entry[]> => {
  const there = new Set(found.map(({ path }) => path))
  const places: Entry[] = []
  const add = (entry: Entry) => {
    if (there.has(entry.path)) return
    there.add(entry.path)
    places.push(entry)
  }
  for (const path of paths) {
    const parts = relative(SETTINGS, path).split('/')
    for (const at of parts.keys()) {
      if (at > 0) add({ path: join(...parts.slice(0, at)), kind: 'folder' })
    }
    const isFolder = (await lstat(path).catch(() => undefined))?.isDirectory() ?? false
    add({ path: join(...parts), kind: isFolder ? 'folder' : 'place' })
  }
  return places
}

/** Some thousand small calls: each by a thread of its own would take three times as long. */
const valueOr = <T>(look: () => T, otherwise: T): T => {
  try {
    return look()
  } catch {
    return otherwise
  }
}

/** Lets others work now and then: at a tenth of a millisecond each, a piece takes 5 ms. */
const pieces = (): (() => Promise<void> | undefined) => {
  let done = 0
  return () => (++done % 50 === 0 ? setImmediate() : undefined)
}

const scanned = async (granted: readonly string[]): Promise<Scan> => {
  const entries: Entry[] = []
  const folders = new Map<string, number>()
  const digest = createHash('sha256')
  const breath = pieces()
  const walk = async (below: string): Promise<void> => {
    const folder = join(SETTINGS, below)
    folders.set(folder, changedAt(folder))
    for (const name of valueOr(() => readdirSync(folder), []).toSorted()) {
      await breath()
      const path = join(below, name)
      const stat = valueOr(() => lstatSync(join(SETTINGS, path)), undefined)
      const said = [path, stat?.mode, stat?.size, stat?.mtimeMs, stat?.ctimeMs, stat?.ino]
      if (stat?.isSymbolicLink()) {
        const target = valueOr(() => readlinkSync(join(SETTINGS, path)), '')
        if (target !== '') entries.push({ path, kind: 'link', target })
        digest.update(JSON.stringify([path, target]))
      } else if (stat?.isDirectory() && (stat.mode & ENTERED_BY_OTHERS) === ENTERED_BY_OTHERS) {
        entries.push({ path, kind: 'folder' })
        digest.update(JSON.stringify([path, stat.mode]))
        await walk(path)
      } else if (stat?.isFile() && isOpen(stat)) {
        entries.push({ path, kind: 'file', executable: (stat.mode & 0o111) !== 0, size: stat.size })
        digest.update(JSON.stringify(said))
      }
    }
  }
  await walk('')
  const places = await placesFor(granted, entries)
  entries.push(...places)
  digest.update(JSON.stringify(places))
  return { entries, folders, digest: digest.digest('hex'), scannedAt: Date.now(), checkedAt: Date.now() }
}

const holds = (scan: Scan): boolean => {
  const now = Date.now()
  if (now - scan.scannedAt > FILES_MS) return false
  if (now - scan.checkedAt < FOLDERS_MS) return true
  scan.checkedAt = now
  return [...scan.folders].every(([folder, at]) => changedAt(folder) === at)
}

/** Whether all users may read a file: another could have taken its place since the scan. */
const isOpen = ({ mode, size }: Stats): boolean => (mode & READ_BY_OTHERS) !== 0 && size <= LARGEST

/** Whether a copy has all its files: a power cut leaves those empty that were not on the disk yet. */
const isWhole = async (copy: string, entries: readonly Entry[]): Promise<boolean> => {
  const breath = pieces()
  for (const { path, kind, size } of entries) {
    await breath()
    const there = valueOr(() => lstatSync(join(copy, path)), undefined)
    if (!there || (kind === 'file' && there.size !== size)) return false
  }
  return true
}

const prune = async (folder: string, kept: string): Promise<void> => {
  const names = (await readdir(folder)).filter(name => !isUnfinishedCopy(name))
  const copies = await Promise.all(names.map(async name => ({ name, at: (await lstat(join(folder, name))).mtimeMs })))
  const old = copies.filter(({ name }) => name !== kept).toSorted((one, other) => other.at - one.at)
  for (const { name } of old.slice(MOST_COPIES - 1)) await rm(join(folder, name), { recursive: true, force: true })
}

const made = async (data: string, { entries, digest }: Scan): Promise<string> => {
  const folder = join(data, NOTES, COPIES)
  const name = digest.slice(0, 32)
  const copy = join(folder, name)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const now = new Date()
  if ((await lstat(copy).catch(() => undefined))?.isDirectory()) {
    if (await isWhole(copy, entries)) {
      await utimes(copy, now, now)
      return copy
    }
    await rename(copy, join(folder, `.old-${randomUUID()}`))
  }
  const fresh = join(folder, `.new-${randomUUID()}`)
  await fill(fresh, entries).catch(async error => {
    await rm(fresh, { recursive: true, force: true })
    throw error
  })
  await rename(fresh, copy).catch(async error => {
    await rm(fresh, { recursive: true, force: true })
    // Another process made the same.
    if (!(await lstat(copy).catch(() => undefined))?.isDirectory()) throw error
  })
  await prune(folder, name).catch(ignored('the next copy prunes again'))
  return copy
}

const fill = async (fresh: string, entries: readonly Entry[]): Promise<void> => {
  const breath = pieces()
  mkdirSync(fresh, { mode: 0o755 })
  for (const { path, kind, target = '', executable } of entries) {
    await breath()
    const to = join(fresh, path)
    if (kind === 'folder') mkdirSync(to, { mode: 0o755 })
    else if (kind === 'link') symlinkSync(target, to)
    else if (kind === 'place') writeFileSync(to, '')
    else copyItselfSync(join(SETTINGS, path), to, { mode: executable ? 0o755 : 0o644, fits: isOpen })
  }
}

/**
 * A copy of what all users may read of `/etc`: no passwords, private keys or sudoers.
 *
 * A mount that covers a file is gone once the machine puts another file in its place, as `passwd` does with
 * `/etc/shadow`: programs behind walls that run would see that one. In a copy it never appears.
 *
 * @param granted Paths that are mounted over the copy, which has a place for each.
 */
export const settingsCopy = (data: string, granted: readonly string[] = []): Promise<string> => {
  const places = granted.filter(path => path !== SETTINGS && contains(SETTINGS, path)).toSorted()
  const key = JSON.stringify([data, ...places])
  const found = asked.get(key) ?? current(data, places, key).finally(() => asked.delete(key))
  asked.set(key, found)
  return found
}

/** One at a time for each key: walls begin at the same moment. */
const asked = new Map<string, Promise<string>>()

const current = async (data: string, places: readonly string[], key: string): Promise<string> => {
  const kept = known.get(key)
  // Somebody may have removed it with its folder.
  const before = kept && lstatSync(kept.copy, { throwIfNoEntry: false }) ? kept : undefined
  if (before && holds(before.scan)) return before.copy
  const scan = await scanned(places)
  const copy = before?.scan.digest === scan.digest ? before.copy : await made(data, scan)
  known.set(key, { scan, copy })
  return copy
}
