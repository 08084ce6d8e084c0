import { randomUUID } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readPlain } from '../../../sdk/node/files/files.js'
import type { RepoGit } from '../repositories/repo-git.js'

const MOST_NOTE = 64 * 1024 * 1024
const FORMAT = '--format=%(objectname) %(refname) %(symref)'

/** The non-symbolic refs of a repository, by name. */
export const directRefs = async (
  read: (args: readonly string[]) => Promise<{ text: string }>,
): Promise<Map<string, string>> => {
  const { text } = await read(['for-each-ref', FORMAT])
  return new Map(
    text.split('\n').flatMap((line): [string, string][] => {
      const [id = '', name = '', symbolic = ''] = line.split(' ')
      return name === '' || symbolic !== '' ? [] : [[name, id]]
    }),
  )
}

/** The settings of a transfer: the hash format, and whether objects may be missing without fetching them. */
const configOf = (format: string, partial: boolean): string =>
  [
    '[core]',
    `\trepositoryFormatVersion = ${format === 'sha1' && !partial ? 0 : 1}`,
    '\tbare = true',
    '[extensions]',
    ...(format === 'sha1' ? [] : [`\tobjectFormat = ${format}`]),
    ...(partial ? ['\tpartialClone = origin', '[remote "origin"]', '\tpromisor = true'] : []),
    '',
  ].join('\n')

/**
 * A git dir of the daemon over the objects of a repository: git contacts a remote from here, so that neither the
 * settings nor the hooks of the repository apply while it has a network and a credential.
 */
export class ScratchTransfer implements AsyncDisposable {
  readonly dir: string
  readonly #common: string
  readonly refs: ReadonlyMap<string, string>

  private constructor(dir: string, common: string, refs: ReadonlyMap<string, string>) {
    this.dir = dir
    this.#common = common
    this.refs = refs
  }

  /** Makes one with the current refs of the repository. */
  static async open(folder: string, git: RepoGit): Promise<ScratchTransfer> {
    const dir = join(folder, randomUUID())
    const { common } = git.place
    const [refs, format, partial] = await Promise.all([
      directRefs(args => git.read(args)),
      git.read(['rev-parse', '--show-object-format']).then(({ text }) => text.trim()),
      git.read(['config', '--local', '--no-includes', '--get', 'extensions.partialclone'], { ok: [0, 1] }),
    ])
    await mkdir(join(dir, 'refs'), { recursive: true, mode: 0o700 })
    await writeFile(join(dir, 'HEAD'), 'ref: refs/heads/none\n')
    await writeFile(join(dir, 'config'), configOf(format, partial.code === 0))
    await writeFile(join(dir, 'packed-refs'), [...refs].map(([name, id]) => `${id} ${name}\n`).join(''))
    const shallow = readPlain(join(common, 'shallow'))
    if (shallow !== undefined) await writeFile(join(dir, 'shallow'), shallow)
    return new ScratchTransfer(dir, common, refs)
  }

  get env(): { readonly [name: string]: string } {
    return { GIT_DIR: this.dir, GIT_OBJECT_DIRECTORY: join(this.#common, 'objects') }
  }

  /** Git's file of shallow commits here, if it differs from the repository's. */
  get shallow(): string | undefined {
    const now = readPlain(join(this.dir, 'shallow'))
    return now === readPlain(join(this.#common, 'shallow')) ? undefined : now
  }

  /** The content of FETCH_HEAD. */
  get fetchHead(): string {
    return readPlain(join(this.dir, 'FETCH_HEAD'), MOST_NOTE) ?? ''
  }

  [Symbol.asyncDispose](): Promise<void> {
    return rm(this.dir, { recursive: true, force: true })
  }
}
