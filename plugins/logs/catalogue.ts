import { constants, type Stats } from 'node:fs'
import { lstat, open, readdir, realpath, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse } from '../../sdk/index.js'
import { isLive } from '../../sdk/node/logs/rotating-file.js'
import { codeOf } from '../../sdk/node/files/paths.js'
import type { LogFile, LogKind } from './contract.js'

const FOLDERS: { readonly [folder: string]: LogKind } = {
  plugins: 'plugin',
  terminals: 'terminal',
  runs: 'run',
  crash: 'crash',
}
const DEEP = 3
const AGED = /\.\d$/
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO', 'EACCES', 'ENAMETOOLONG'])

/** The log files below a folder: plain files only, links are not followed. */
export class Catalogue {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Every log, the last changed first. */
  async list(): Promise<LogFile[]> {
    const files: LogFile[] = []
    const walk = async (parts: readonly string[]): Promise<void> => {
      const entries = await readdir(join(this.#folder, ...parts), { withFileTypes: true }).catch(error => {
        if (ABSENT.has(codeOf(error) ?? '')) return []
        throw error
      })
      for (const entry of entries) {
        if (entry.name.startsWith('.')) continue
        const path = [...parts, entry.name]
        if (entry.isDirectory() && path.length < DEEP) await walk(path)
        const found = entry.isFile() ? await lstat(join(this.#folder, ...path)).catch(() => undefined) : undefined
        const file = found?.isFile() && this.#describe(path, found)
        if (file) files.push(file)
      }
    }
    await walk([])
    return files.sort((a, b) => b.modifiedAt - a.modifiedAt || (a.name < b.name ? -1 : 1))
  }

  /** Opens a log for reading, wherever its name would lead otherwise. */
  async open(name: string): Promise<FileHandle> {
    const path = await this.path(name)
    const absent = () =>
      refuse('not-found', `there is no log ${JSON.stringify(name.slice(0, 100))}: GET /logs lists them`)
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(error =>
      ABSENT.has(codeOf(error) ?? '') ? absent() : Promise.reject(error),
    )
    if ((await file.stat()).isFile()) return file
    await file.close()
    return absent()
  }

  /** Where a log lies: no link is on the way there. */
  async path(name: string): Promise<string> {
    const parts = name.split('/')
    const leaves =
      name.startsWith('/')
      || /[\\\0]/.test(name)
      || !name.isWellFormed()
      || parts.some(part => part === '' || part === '.' || part === '..')
    if (leaves) {
      refuse('invalid', 'name: expected the name of a log as GET /logs gives it, found a path that leaves the logs', {
        errors: [{ path: 'name', expected: 'the name of a log, such as daemon.log' }],
      })
    }
    const absent = () =>
      refuse('not-found', `there is no log ${JSON.stringify(name.slice(0, 100))}: GET /logs lists them`)
    if (parts.some(part => part.startsWith('.')) || !kindOf(parts)) absent()
    const home = await realpath(this.#folder).catch(absent)
    const folder = join(home, ...parts.slice(0, -1))
    if ((await realpath(folder).catch(absent)) !== folder) absent()
    return join(folder, parts.at(-1)!)
  }

  #describe(parts: readonly string[], { size, mtimeMs }: Stats): LogFile | undefined {
    const kind = kindOf(parts)
    const conversationId = kind === 'run' && parts.length === DEEP ? parts[1] : undefined
    return (
      kind && {
        name: parts.join('/'),
        kind,
        sizeBytes: size,
        modifiedAt: Math.round(mtimeMs),
        live:
          isLive(join(this.#folder, ...parts))
          || ((kind === 'daemon' || kind === 'plugin') && !AGED.test(parts.at(-1)!)),
        ...(conversationId !== undefined && { conversationId }),
      }
    )
  }
}

const kindOf = ([first = '', ...rest]: readonly string[]): LogKind | undefined =>
  rest.length > 0
    ? Object.hasOwn(FOLDERS, first)
      ? FOLDERS[first]
      : undefined
    : /^daemon\.log(\.\d)?$/.test(first)
      ? 'daemon'
      : undefined
