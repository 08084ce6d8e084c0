import fs, { type BigIntStats } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'

/*
 * A simulated disk for power cuts. Import it before any module that writes: it replaces every flush function of Node.
 *
 * Writes go to the real file system and are read from there. What survives a cut is kept beside it: the bytes a file
 * had when its flush began, and the names a folder had when its flush began, from the moment the flush was
 * acknowledged. So the product needs no special code for it.
 */

const {
  closeSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} = fs

/** The identity of a file, independent of its names. */
type Inode = string

const inodeOf = ({ ino, birthtimeNs }: BigIntStats): Inode => `${ino}.${birthtimeNs}`

interface Entry {
  readonly inode: Inode
  readonly kind: 'file' | 'folder' | 'link'
  readonly link: string
}

type Names = ReadonlyMap<string, Entry>

const namesIn = (folder: string): Names =>
  new Map(
    readdirSync(folder).flatMap(name => {
      const path = join(folder, name)
      const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false })
      if (!stat || !(stat.isFile() || stat.isDirectory() || stat.isSymbolicLink())) return []
      const kind = stat.isDirectory() ? 'folder' : stat.isSymbolicLink() ? 'link' : 'file'
      return [[name, { inode: inodeOf(stat), kind, link: kind === 'link' ? readlinkSync(path) : '' }] as const]
    }),
  )

/** The contents of a disk: the bytes of every file, and the names in every folder. */
class Surface {
  constructor(
    readonly files: Map<Inode, Buffer> = new Map(),
    readonly folders: Map<Inode, Names> = new Map(),
  ) {}

  static of(root: string, left: (path: string) => boolean): Surface {
    const found = new Surface()
    const walk = (folder: string, inode: Inode): void => {
      const names = new Map([...namesIn(folder)].filter(([name]) => !left(join(folder, name))))
      found.folders.set(inode, names)
      for (const [name, { inode: below, kind }] of names) {
        if (kind === 'folder') walk(join(folder, name), below)
        else if (kind === 'file') found.files.set(below, readFileSync(join(folder, name)))
      }
    }
    walk(root, inodeOf(lstatSync(root, { bigint: true })))
    return found
  }

  copy(): Surface {
    return new Surface(new Map(this.files), new Map(this.folders))
  }
}

/**
 * What a cut does to unflushed writes: all are lost, or names reach the disk before bytes, or
 * later bytes before earlier ones.
 */
export const CUTS = ['gone', 'names', 'torn', 'zeros', 'holes', 'some', 'kept'] as const
export type Cut = (typeof CUTS)[number]

const half = (flushed: Buffer, now: Buffer): Buffer => {
  const appended = now.length > flushed.length && now.subarray(0, flushed.length).equals(flushed)
  const at = appended ? (flushed.length + now.length) >> 1 : now.length >> 1
  return Buffer.concat([now.subarray(0, at), flushed.subarray(at)])
}

const BYTES: { readonly [cut in Exclude<Cut, 'some'>]: (flushed: Buffer, now: Buffer) => Buffer } = {
  gone: flushed => flushed,
  names: flushed => flushed,
  torn: half,
  zeros: (flushed, now) => Buffer.concat([flushed, Buffer.alloc(Math.max(0, now.length - flushed.length))]),
  holes: (flushed, now) => {
    const hole = Math.max(0, now.length - flushed.length) >> 1
    return Buffer.concat([flushed, Buffer.alloc(hole), now.subarray(flushed.length + hole)])
  },
  kept: (_flushed, now) => now,
}
const MIXED = ['names', 'torn', 'zeros', 'holes', 'kept'] as const

/** The entry at each path of a disk: the bytes of a file, or an entry of another type. */
export type Image = Map<string, Buffer | Entry>

/** Writes an image to a folder. */
export const restore = (image: Image, to: string): void => {
  rmSync(to, { recursive: true, force: true })
  mkdirSync(to)
  for (const [path, found] of image) {
    if (Buffer.isBuffer(found)) writeFileSync(join(to, path), found, { mode: 0o600 })
    else if (found.kind === 'folder') mkdirSync(join(to, path))
    else symlinkSync(found.link, join(to, path))
  }
}

/** A disk at one moment: what was flushed, and what was written. */
export class Moment {
  readonly #root: Inode
  readonly #flushed: Surface
  readonly #now: Surface

  constructor(root: Inode, flushed: Surface, now: Surface) {
    this.#root = root
    this.#flushed = flushed
    this.#now = now
  }

  /** A possible state of the disk after a cut at this moment, by path. */
  image(cut: Cut, random: () => number): Image {
    const gone = cut === 'gone' || (cut === 'some' && random() < 0.5)
    const names = gone ? this.#flushed.folders : this.#now.folders
    const image: Image = new Map()
    const walk = (folder: string, inode: Inode): void => {
      for (const [name, entry] of names.get(inode) ?? []) {
        const path = join(folder, name)
        if (entry.kind !== 'file') image.set(path, entry)
        else
          image.set(path, this.#bytes(entry.inode, cut === 'some' ? MIXED[Math.floor(random() * MIXED.length)]! : cut))
        if (entry.kind === 'folder') walk(path, entry.inode)
      }
    }
    walk('', this.#root)
    return image
  }

  #bytes(inode: Inode, cut: Exclude<Cut, 'some'>): Buffer {
    const flushed = this.#flushed.files.get(inode) ?? Buffer.alloc(0)
    return BYTES[cut](flushed, this.#now.files.get(inode) ?? flushed)
  }
}

/** The files below a folder on the simulated disk; files that exist at first count as flushed. */
export class Disk {
  readonly #path: string
  readonly #root: Inode
  readonly #flushed: Surface
  readonly #left: (path: string) => boolean
  /** The order of the reads of flushes, because a later flush may be acknowledged first. */
  readonly #read = new Map<Inode, number>()
  #reads = 0
  /** Called before and after every flush: what a cut loses changes only at these moments. */
  around = (): void => {}

  /** @param left Paths that other programs write: their flushes are not visible here, so the disk leaves them out. */
  constructor(path: string, left: (path: string) => boolean = () => false) {
    this.#path = path
    this.#left = left
    this.#root = inodeOf(lstatSync(path, { bigint: true }))
    this.#flushed = Surface.of(path, left)
    disks.add(this)
  }

  moment(): Moment {
    return new Moment(this.#root, this.#flushed.copy(), Surface.of(this.#path, this.#left))
  }

  /** Stops watching. */
  end(): void {
    disks.delete(this)
  }

  /** Called when a flush begins; the returned function makes the state durable when the flush is acknowledged. */
  begins(path: string, fd: number): () => void {
    if (path !== this.#path && !path.startsWith(`${this.#path}/`)) return () => {}
    this.around()
    const stat = fstatSync(fd, { bigint: true })
    const inode = inodeOf(stat)
    const order = ++this.#reads
    const found = stat.isDirectory() ? this.#namesIn(path) : readFileSync(`/proc/self/fd/${fd}`)
    const moved = found instanceof Map ? this.#moved(inode, found) : () => {}
    return () => {
      if ((this.#read.get(inode) ?? 0) > order) return
      this.#read.set(inode, order)
      if (!(found instanceof Map)) this.#flushed.files.set(inode, found as Buffer)
      else this.#flushed.folders.set(inode, found as Names)
      moved()
      this.around()
    }
  }

  #namesIn(path: string): Names {
    return new Map([...namesIn(path)].filter(([name]) => !this.#left(join(path, name))))
  }

  /**
   * Moving a file to another folder is atomic: flushing either folder removes it from one and adds it to
   * the other.
   */
  #moved(inode: Inode, found: Names): () => void {
    const before = this.#flushed.folders.get(inode) ?? new Map<string, Entry>()
    const had = new Set([...before.values()].map(({ inode }) => inode))
    const has = new Set([...found.values()].map(({ inode }) => inode))
    const now = Surface.of(this.#path, this.#left).folders
    const named = new Map(
      [...now].flatMap(([folder, names]) =>
        [...names].map(([name, entry]) => [entry.inode, { folder, name, entry }] as const),
      ),
    )
    return () => {
      for (const [folder, names] of this.#flushed.folders) {
        const gone = [...names].filter(
          ([, entry]) => has.has(entry.inode) && !had.has(entry.inode) && named.get(entry.inode)?.folder !== folder,
        )
        if (folder !== inode && gone.length > 0)
          this.#flushed.folders.set(
            folder,
            new Map([...names].filter(([name]) => !gone.some(([other]) => other === name))),
          )
      }
      for (const lost of [...had].filter(one => !has.has(one))) {
        const at = named.get(lost)
        if (at && at.folder !== inode)
          this.#flushed.folders.set(at.folder, new Map(this.#flushed.folders.get(at.folder)).set(at.name, at.entry))
      }
    }
  }
}

const disks = new Set<Disk>()

const begin = (fd: number): (() => void) => {
  const path = disks.size > 0 ? readlinkSync(`/proc/self/fd/${fd}`) : ''
  const ends = [...disks].map(disk => disk.begins(path, fd))
  return () => ends.forEach(end => end())
}

// No real flush: the machine that runs the tests keeps its power.
const later = (fd: number, done: (error: Error | null) => void): void => {
  const end = begin(fd)
  setImmediate(() => {
    end()
    done(null)
  })
}
const atOnce = (fd: number): void => begin(fd)()
const handled = function (this: { readonly fd: number }): Promise<void> {
  return new Promise(resolve => later(this.fd, () => resolve()))
}

const { open } = fs.promises
const opening: typeof open = async (...args) => {
  const handle = await open(...args)
  Object.assign(Object.getPrototypeOf(handle) as object, { sync: handled, datasync: handled })
  return handle
}
Object.assign(fs, { fsync: later, fdatasync: later, fsyncSync: atOnce, fdatasyncSync: atOnce })
Object.assign(fs.promises, { open: opening })
// Synchronously with this module, so that modules loaded after it import the replaced functions.
syncBuiltinESMExports()

/** Whether this system shows the paths of descriptors, which the simulation needs. */
export const canCut = ((): boolean => {
  const fd = openSync('/dev/null', 'r')
  try {
    return readlinkSync(`/proc/self/fd/${fd}`) === '/dev/null'
  } catch {
    return false
  } finally {
    closeSync(fd)
  }
})()
