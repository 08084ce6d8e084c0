import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CONFIG_NAME, entriesIn, INTENT, type DeployEntry } from '../../node/deploy/entries.js'
import { DESIRED } from '../../node/deploy/desired.js'
import { writeAtomic } from '../../node/files/files.js'
import { openFile, openPath } from '../../node/files/open-path.js'
import { codeOf } from '../../node/files/paths.js'
import { git } from '../../node/programs/git.js'
import { CommandFailure, EXIT } from '../verb.js'

const WRITER = { name: 'sandbox', email: 'sandbox@localhost' }
const LARGEST = 1024 * 1024

const refused = (message: string): never => {
  throw new CommandFailure(EXIT.refused, message)
}

/** Reads a file of the workspace; undefined: there is none. */
export const recordText = async (workspace: string, path: string): Promise<string | undefined> => {
  await using found = await openPath({ root: workspace, reach: undefined, readsGit: false }, path)
  if (!found) return undefined
  if (!found.stats.isFile() || found.stats.size > LARGEST) refused(`${path}: expected a file of at most 1 MiB`)
  await using file = await openFile(found, path)
  return file.readFile('utf8')
}

/** The entries of the deployment configuration as its file has them now. */
export const deployEntries = async (workspace: string): Promise<DeployEntry[]> => {
  const text = await recordText(workspace, `${INTENT}/${CONFIG_NAME}`)
  return entriesIn(
    text ?? refused(`there is no ${INTENT}/${CONFIG_NAME} here: connect the card DevOps, then add entries`),
  )
}

/** What a file of the repository of the desired state holds. */
export const readRecord = async <T>(workspace: string, file: string): Promise<T | undefined> => {
  const text = await recordText(workspace, `${DESIRED}/${file}`)
  if (text === undefined) return undefined
  try {
    return JSON.parse(text) as T
  } catch {
    return refused(`${DESIRED}/${file} cannot be read: run deploy resolve again, which writes it anew`)
  }
}

/** Writes a file of that repository and commits it alone; answers the commit, or undefined where nothing changed. */
export const commitRecord = async (
  workspace: string,
  file: string,
  value: object,
  message: string,
): Promise<string | undefined> => {
  const folder = join(workspace, DESIRED)
  const content = `${JSON.stringify(value, undefined, 2)}\n`
  await using found = await openPath({ root: workspace, reach: undefined, readsGit: false }, DESIRED)
  if (!found?.stats.isDirectory()) refused(`there is no repository ${DESIRED} here: connect the card DevOps`)
  const at = async (...args: string[]) => (await git(folder, args)).text.trim()
  const head = await at('rev-parse', '--verify', '--quiet', 'HEAD').catch(() => undefined)
  const blob = (await git(folder, ['hash-object', '-w', '--stdin'], { input: content })).text.trim()
  const known = head && (await at('rev-parse', '--verify', '--quiet', `HEAD:${file}`).catch(() => undefined))
  const onDisk = await readFile(join(folder, file), 'utf8').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  })
  if (known === blob && onDisk === content) return undefined
  await writeAtomic(join(folder, file), content, { flush: true })
  if (known === blob) return undefined
  const scratch = await mkdtemp(join(tmpdir(), 'sandbox-index-'))
  try {
    // An index of its own: what somebody staged stays staged, and is in no commit of ours.
    const env = { GIT_INDEX_FILE: join(scratch, 'index') }
    if (head) await git(folder, ['read-tree', head], { env })
    await git(folder, ['update-index', '--add', '--cacheinfo', `100644,${blob},${file}`], { env })
    const tree = (await git(folder, ['write-tree'], { env })).text.trim()
    const parents = head ? ['-p', head] : []
    const { text } = await git(folder, ['commit-tree', tree, ...parents], { identity: WRITER, input: `${message}\n` })
    const commit = text.trim()
    await git(folder, ['update-ref', '-m', message, 'HEAD', commit, ...(head ? [head] : [])])
    await git(folder, ['update-index', '--add', '--cacheinfo', `100644,${blob},${file}`])
    return commit
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}
