import { randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gitdirsIn } from '../../../sdk/node/wall/gitdirs.js'
import { readPlain } from '../../../sdk/node/files/files.js'

/** The name of the note in a git dir whose checkout is not at its final path yet; it contains that path. */
const NOTE = 'sandbox-unfinished'

/** A git dir in the data folder for a new repository of the workspace. */
export interface NewGitdir {
  readonly dir: string
  /** Called when its checkout is at its final path. */
  finished(): Promise<void>
  /** Removes it after a failure. */
  drop(): Promise<void>
}

/** The content of a `.git` file that points to a git dir. */
export const pointerTo = (gitdir: string): string => `gitdir: ${gitdir}\n`

/** Makes git dirs below the data folder, and removes those that a killed daemon left without a checkout. */
export class NewGitdirs {
  readonly #folder: string
  readonly #workspace: string

  constructor({ data, workspace }: { readonly data: string; readonly workspace: string }) {
    this.#folder = gitdirsIn(data)
    this.#workspace = workspace
  }

  /** Makes one with a note of its repository's path. */
  async make(path: string): Promise<NewGitdir> {
    const id = randomUUID()
    const dir = join(this.#folder, id)
    const note = join(this.#folder, `${id}.${NOTE}`)
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    await writeFile(note, path)
    return {
      dir,
      finished: () => rm(note, { force: true }),
      drop: async () => {
        await rm(dir, { recursive: true, force: true })
        await rm(note, { force: true })
      },
    }
  }

  /** Keeps those whose checkout is at its path, and removes the others. */
  async sweep(): Promise<void> {
    for (const name of await readdir(this.#folder).catch(() => [] as string[])) {
      if (!name.endsWith(`.${NOTE}`)) continue
      const note = join(this.#folder, name)
      const dir = note.slice(0, -NOTE.length - 1)
      const path = await readFile(note, 'utf8')
      const placed = readPlain(join(this.#workspace, path, '.git')) === pointerTo(dir)
      if (!placed) await rm(dir, { recursive: true, force: true })
      await rm(note, { force: true })
    }
  }
}
