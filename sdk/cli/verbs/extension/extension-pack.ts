import { createWriteStream } from 'node:fs'
import { lstat, readdir, readFile, readlink, rename, rm } from 'node:fs/promises'
import { basename, join, posix, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { namesOf } from '../../../node/programs/library.js'
import { bytesWords } from '../../../sizes.js'
import { printResult } from '../../terminal/asked.js'
import { counted, oneLine, plain } from '../../terminal/text.js'
import { EXIT, CommandFailure, type GivenArguments, type Terminal } from '../../verb.js'

const MANIFEST = 'intentic-extension.json'
const LEFT_OUT = new Set(['.git', 'node_modules'])
/** The same files give the same archive: it holds no times. */
const NO_TIME = new Date(0)

interface PackedFile {
  readonly path: string
  readonly mode: number
  readonly link?: string
}

const failed = (message: string): never => {
  throw new CommandFailure(EXIT.failed, message)
}

/** Writes the files of an extension into an archive. */
export const packFolder = async (
  terminal: Terminal,
  given: GivenArguments,
  folder = '.',
  file?: string,
): Promise<number> => {
  const root = resolve(terminal.cwd, folder)
  const { name = basename(root), version = '0.0.0', ...manifest } = await manifestIn(root, folder)
  const to = resolve(terminal.cwd, file ?? `${name}-${version}.tar.gz`)
  const files = (await filesBelow(root)).filter(({ path }) => join(root, path) !== to)
  for (const bundle of [manifest.entry, manifest.server])
    if (bundle !== undefined && !files.some(({ path }) => path === bundle))
      failed(`${plain(folder)} is not built: ${oneLine(bundle)} is not there`)
  const size = await written(root, files, to)
  const answer = { file: to, files: files.length, bytes: size }
  return printResult(terminal, given, answer, () =>
    oneLine(`packed ${counted(files.length, 'file')} into ${to} (${bytesWords(size)})`),
  )
}

const manifestIn = async (root: string, folder: string) => {
  const text = await readFile(join(root, MANIFEST), 'utf8').catch(() =>
    failed(`expected the folder of an extension: ${plain(folder)} has no ${MANIFEST}`),
  )
  try {
    return JSON.parse(text) as { name?: string; version?: string; entry?: string; server?: string }
  } catch {
    return failed(`${MANIFEST} of ${plain(folder)} is not valid JSON`)
  }
}

const filesBelow = async (root: string, below = ''): Promise<PackedFile[]> => {
  const found: PackedFile[] = []
  const entries = await readdir(join(root, below), { withFileTypes: true })
  for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
    const path = posix.join(below, entry.name)
    if (LEFT_OUT.has(entry.name)) continue
    if (entry.isDirectory()) found.push(...(await filesBelow(root, path)))
    else if (entry.isSymbolicLink()) found.push({ path, mode: 0o777, link: await readlink(join(root, path)) })
    else if (entry.isFile()) found.push({ path, mode: (await lstat(join(root, path))).mode & 0o100 ? 0o755 : 0o644 })
  }
  return found
}

const written = async (root: string, files: readonly PackedFile[], to: string): Promise<number> => {
  const { pack } = namesOf(await import('tar-stream'))
  const archive = pack()
  const part = `${to}.part`
  const done = pipeline(archive, createGzip({ level: 9 }), createWriteStream(part))
  try {
    for (const { path, mode, link } of files) {
      const head = { name: path, mode, mtime: NO_TIME }
      if (link !== undefined) archive.entry({ ...head, type: 'symlink', linkname: link })
      else archive.entry(head, await readFile(join(root, path)))
    }
    archive.finalize()
    await done
    await rename(part, to)
    return (await lstat(to)).size
  } catch (error) {
    archive.destroy()
    await rm(part, { force: true })
    throw error
  }
}
