import { constants, existsSync } from 'node:fs'
import { open, rm, stat } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { refuse, Refusal } from '../../../sdk/index.js'
import { isClosedName } from '../../../sdk/node/files/closed-names.js'
import { flushFolder, sweepTemporary, writeAtomic } from '../../../sdk/node/files/files.js'
import { codeOf, inside, segmentsOf } from '../../../sdk/node/files/paths.js'
import { git } from '../../../sdk/node/programs/git.js'
import { writeFailure } from '../../../sdk/node/files/disk.js'
import { editEnvText, readEnvText } from './env-text.js'
import { onlyName, zero } from '../overwriting.js'

/** The most bytes of a `.env` file that is read. */
export const MOST_ENV_BYTES = 80 * 1024 * 1024

/** A `.env` file of the workspace as a store of values: read anew when somebody changed it, written in one step. */
export class EnvFile {
  readonly path: string
  readonly #workspace: string
  #seen = ''
  #values: ReadonlyMap<string, string> = new Map()

  /** @param path From the workspace. */
  constructor(workspace: string, path: string) {
    this.#workspace = workspace
    this.path = path
  }

  /** Its values by name; the same map for as long as nobody changed the file. Throws where it holds no `.env` text. */
  async values(): Promise<ReadonlyMap<string, string>> {
    const found = await this.#read(this.#seen)
    if (found) {
      this.#values = new Map(readEnvText(found.text).map(({ name, value }) => [name, value]))
      this.#seen = found.seen
    }
    return this.#values
  }

  /** Replaces, adds and drops values in one step; it is on the disk when this returns. */
  async edit(set: ReadonlyMap<string, string>, drop: ReadonlySet<string>): Promise<void> {
    const file = await inside(this.#workspace, this.path, { allowMissing: true })
    const text = (await this.#read(''))?.text ?? ''
    const next = editEnvText(text, set, drop)
    if (next === text) return
    const before = drop.size > 0 ? await onlyName(file) : undefined
    try {
      if (next.trim() === '') {
        await rm(file, { force: true })
        await flushFolder(dirname(file))
      } else await writeAtomic(file, next, { mode: 0o600, flush: true })
      // Only once it has no name any more: a daemon that is killed on the way finds a whole file, or none.
      if (before) await zero(before)
    } catch (error) {
      throw writeFailure(error)
    } finally {
      await before?.close()
    }
  }

  /** Removes what writes left beside it that were cut off. */
  async sweep(): Promise<void> {
    await sweepTemporary(dirname(await inside(this.#workspace, this.path, { allowMissing: true })))
  }

  /** Its text, unless it is as it was seen; '' where there is none. */
  async #read(seen: string): Promise<{ text: string; seen: string } | undefined> {
    const file = await inside(this.#workspace, this.path, { allowMissing: true })
    const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(error => {
      if (codeOf(error) === 'ENOENT') return undefined
      throw new Error(`${this.path} cannot be read (${codeOf(error)})`, { cause: error })
    })
    if (!handle) return seen === 'none' ? undefined : { text: '', seen: 'none' }
    try {
      const found = await handle.stat({ bigint: true })
      const is = `${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`
      if (is === seen) return undefined
      if (!found.isFile() || found.size > MOST_ENV_BYTES) throw new Error(`${this.path} is no file of a usual size`)
      return {
        text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await handle.readFile()),
        seen: is,
      }
    } finally {
      await handle.close()
    }
  }
}

/** Refuses a path that may not hold secrets: git must ignore it, or the next commit would publish them. */
export const checkEnvPath = async (workspace: string, path: string): Promise<void> => {
  const file = await placeOf(workspace, path)
  const wrong = (found: string) =>
    refuse('unprocessable', `path: expected a .env file that git ignores, such as .env.local, found ${path}, ${found}`)
  if (isClosedName(segmentsOf(relative(workspace, file)))) wrong('which belongs to git or the sandbox')
  const folder = dirname(file)
  if (!(await stat(folder).catch(() => undefined))?.isDirectory()) wrong('whose folder is not there: make it first')
  const repository = repositoryOf(workspace, folder)
  const name = relative(repository, file)
  const asked = async (...args: string[]) => (await git(repository, args, { ok: [0, 1, 128] })).code
  if ((await asked('ls-files', '--error-unmatch', '--', `:(literal)${name}`)) === 0)
    wrong('which is tracked by git, so that a commit would publish it')
  if ((await asked('check-ignore', '-q', '--', name)) !== 0)
    wrong('which is not ignored by git: add it to .gitignore first')
  await new EnvFile(workspace, path).values().catch((error: unknown) => {
    wrong(`which does not hold .env text: ${(error as Error).message}`)
  })
}

/** The nearest folder with a git folder, up to the workspace. */
const repositoryOf = (workspace: string, folder: string): string =>
  folder === workspace || existsSync(join(folder, '.git')) ? folder : repositoryOf(workspace, dirname(folder))

const placeOf = async (workspace: string, path: string): Promise<string> => {
  try {
    const file = await inside(workspace, path, { allowMissing: true })
    if (file !== workspace) return file
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
  }
  return refuse('unprocessable', `expected a path inside the workspace, such as .env.local, found ${path}`)
}
