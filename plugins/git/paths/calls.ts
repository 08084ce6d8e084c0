import { createHash } from 'node:crypto'
import { posix } from 'node:path'
import { lstat, rm } from 'node:fs/promises'
import { ignored, pathOfRepo, refuse, type Caller, type Handlers } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { writeFailure } from '../../../sdk/node/files/disk.js'
import { flushFolder, writeAtomic } from '../../../sdk/node/files/files.js'
import { openFile, openParent, openPath } from '../../../sdk/node/files/open-path.js'
import type { Identity } from '../../../sdk/node/programs/git.js'
import { anyExit } from '../branches/git-words.js'
import { keepingIndex } from '../changes/committing.js'
import { sparing, sparsely } from '../changes/index-writes.js'
import { operationOf } from '../changes/operation.js'
import type { Objects } from '../objects/objects.js'
import type { OpenRepo } from '../repositories/repositories.js'
import { verdictOf } from '../repositories/repo-git.js'
import { SANDBOX_WRITER, commitName } from '../writes/identity.js'
import { writing, type WriteDeps, type Writing } from '../writes/write.js'
import type { PathServices, RepoFileState } from './contract.js'

const MOST_KNOWN = 100
/** A file is read whole. */
const LARGEST = 4 * 1024 * 1024

/** The last commit of each file that was asked for, by repository, HEAD and path. */
class LastCommits {
  readonly #known = new Map<string, string>()

  async of({ git }: OpenRepo, head: string, path: string): Promise<string | undefined> {
    const key = `${git.place.common}\0${head}\0${path}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const { text } = await git.read(['log', '-1', '--format=%H', head, '--', path])
    const commit = text.trim()
    if (commit !== '') this.note(git.place.common, head, path, commit)
    return commit || undefined
  }

  note(common: string, head: string, path: string, commit: string): void {
    if (this.#known.size >= MOST_KNOWN) this.#known.delete(this.#known.keys().next().value!)
    this.#known.set(`${common}\0${head}\0${path}`, commit)
  }
}

const treeOf = ({ view }: OpenRepo, workspace: string) => ({ root: workspace, reach: view.reach, readsGit: false })

/** A file as it is on disk. */
interface FoundFile {
  readonly bytes: Buffer
  readonly mode: number
}

/** Reads a file; undefined: there is none. Refuses a link, which a write would replace by a plain file. */
const fileAt = async (opened: OpenRepo, path: string, workspace: string): Promise<FoundFile | undefined> => {
  const { repo, git } = opened
  const named = await lstat(posix.join(git.place.dir, path)).catch(() => undefined)
  if (named && !named.isFile()) refuse('unprocessable', `${path} of ${repo} is no plain file`)
  await using found = await openPath(treeOf(opened, workspace), posix.join(pathOfRepo(repo), path))
  if (!found) return undefined
  const { size, mode } = found.stats
  if (size > LARGEST) refuse('unprocessable', `${path} of ${repo}: expected at most ${LARGEST} bytes, found ${size}`)
  await using handle = await openFile(found, path)
  return { bytes: await handle.readFile(), mode: mode & 0o7777 }
}

const blobId = (bytes: Buffer, like: string): string =>
  createHash(like.length === 40 ? 'sha1' : 'sha256')
    .update(`blob ${bytes.length}\0`)
    .update(bytes)
    .digest('hex')

/** Whether a file is another one than in HEAD; git is asked only where the bytes differ, as with line ends it does. */
const isDirty = async (
  objects: Objects,
  { git }: OpenRepo,
  {
    path,
    bytes,
    head,
  }: { readonly path: string; readonly bytes: Buffer | undefined; readonly head: string | undefined },
): Promise<boolean> => {
  const entry = head === undefined ? undefined : await objects.entry(git, head, path)
  if (!entry) return bytes !== undefined
  if (bytes && entry.type === 'blob' && blobId(bytes, entry.id) === entry.id) return false
  return (await git.look(['status', '--porcelain=v1', '-z', '--untracked-files=all', '--', path])).text !== ''
}

const authorOf = ({ email, name }: Caller): Identity =>
  email === undefined ? SANDBOX_WRITER : { name: commitName(name ?? '') || email, email }

/** Commits one file as on disk; throws what git says. */
const commitAlone = async (
  write: Writing,
  { path, message, tracked }: { readonly path: string; readonly message: string; readonly tracked: boolean },
  folder: string,
): Promise<void> => {
  const { git } = write.opened
  const { name, email } = authorOf(write.context.caller)
  const env = {
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_COMMITTER_NAME: SANDBOX_WRITER.name,
    GIT_COMMITTER_EMAIL: SANDBOX_WRITER.email,
  }
  const spares = sparing(git, [Buffer.from(path).toString('latin1')])
  const run = async (args: readonly string[], input?: string) => {
    const how = { ...anyExit, env, spares, priority: 'own' as const, ...(input !== undefined && { input }) }
    const { code, stderr, text } = await write.run(args, how)
    if (code !== 0) refuse('conflict', `git commits ${path} not: ${verdictOf(stderr.trim() === '' ? text : stderr)}`)
  }
  await keepingIndex(write, posix.join(folder, 'kept'), async () => {
    if (!tracked) await run(['add', ...(await sparsely(git)), '--', path])
    await run(['commit', '-q', '--only', '-F', '-', '--', path], message)
  })
}

/** Serves the state of single files, and their commits. */
export const pathCalls = ({ folder, ...deps }: WriteDeps & { readonly folder: string }): Handlers<PathServices> => {
  const { objects, repositories, host } = deps
  const { workspace } = host.place
  const last = new LastCommits()

  const put = async (opened: OpenRepo, path: string, file: FoundFile | undefined): Promise<void> => {
    await using parent = await openParent(treeOf(opened, workspace), posix.join(pathOfRepo(opened.repo), path), {})
    if (file) await writeAtomic(parent.target, file.bytes, { mode: file.mode })
    else await rm(parent.target, { force: true })
    await flushFolder(parent.at)
  }

  /** Takes a write back, unless somebody saved another content meanwhile: that stays. */
  const takeBack = async (opened: OpenRepo, path: string, written: FoundFile, before: FoundFile | undefined) => {
    const now = await fileAt(opened, path, workspace)
    if (now?.bytes.equals(written.bytes)) await put(opened, path, before)
  }

  return {
    'git.fileState': async ({ repo, path }, { caller }): Promise<RepoFileState> => {
      const opened = await repositories.open(repo, caller)
      const [head, file] = await Promise.all([objects.head(opened.git), fileAt(opened, path, workspace)])
      const dirty = await isDirty(objects, opened, { path, bytes: file?.bytes, head })
      const operation = operationOf(opened.git.place.gitdir)
      const commit = dirty || head === undefined ? undefined : await last.of(opened, head, path)
      return { dirty, ...(commit !== undefined && { commit }), ...(operation && { operation }) }
    },
    'git.commitFile': ({ repo, path, content, baseHash, message }, context) =>
      writing(deps, { repo, verb: 'commit', whole: true }, context, async write => {
        const { opened, head } = write
        const before = await fileAt(opened, path, workspace)
        if (await isDirty(objects, opened, { path, bytes: before?.bytes, head }))
          refuse('conflict', `${posix.join(pathOfRepo(repo), path)} has uncommitted edits: commit or undo them first`)
        const hash = before ? createHash('sha256').update(before.bytes).digest('hex') : 'absent'
        if (hash !== baseHash)
          refuse('conflict', `${path} of ${repo} changed meanwhile: read it again`, { fields: before ? { hash } : {} })
        const written = { bytes: Buffer.from(content), mode: before?.mode ?? 0o666 & ~process.umask() }
        await put(opened, path, written).catch(error => Promise.reject(writeFailure(error)))
        failpoint('git.file.written')
        try {
          await commitAlone(write, { path, message, tracked: before !== undefined }, folder)
        } catch (error) {
          await takeBack(opened, path, written, before).catch(ignored('the file shows as an uncommitted edit'))
          throw error
        }
        const commit = (await objects.head(opened.git)) ?? refuse('failed', `${repo} has no commit after one was made`)
        last.note(opened.git.place.common, commit, path, commit)
        await write.note('committed', { repo, sha: commit, subject: message.slice(0, 200) })
        return { commit }
      }),
  }
}
