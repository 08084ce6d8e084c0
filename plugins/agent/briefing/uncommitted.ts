import { posix } from 'node:path'
import { allows, Refusal, type Host, type Reach } from '../../../sdk/index.js'
import { asData } from '../../../sdk/node/access/redact.js'
import { unlessAborted } from '../../../sdk/node/concurrency/unless-aborted.js'
import { pathOf } from '../../../sdk/node/repositories/main-repository.js'
import type { GitChange, UncommittedChanges } from '../../git/contract.js'
import type { TurnNote } from '../turn/frames/frames.js'

/** A turn does not wait longer for the state of a large workspace. */
const STATUS_MS = 3_000
/** The lines of the note, one for each repository. */
const MOST_LINES = 5
const MOST_NAMED = 8
const MOST_LINE = 600
const LETTERS: { readonly [status in GitChange['status']]: string } = {
  ...{ added: 'A', modified: 'M', deleted: 'D', renamed: 'R', 'type-changed': 'T', conflicted: 'U' },
}

/** The conversation that is told what of the workspace is not committed. */
export interface ToldConversation {
  readonly id: string
  /** The repositories of its private copy; undefined: it works in the shared tree. */
  readonly copied: readonly string[] | undefined
  /** The folders that it reaches. */
  readonly folders: Reach
}

/** What of the workspace is not committed, for a turn that begins. */
export interface Uncommitted {
  /** For the model. */
  readonly note: TurnNote
  /** For people, of what a private copy lacks. */
  readonly notice?: string
}

/** What a repository holds that is not committed, by path, without what the conversation itself landed last. */
const changesIn = (
  { repo, conflicted, staged, unstaged, origins = {} }: UncommittedChanges,
  { id, copied, folders }: ToldConversation,
): readonly GitChange[] => {
  const all = new Map([...unstaged, ...staged, ...conflicted].map(change => [change.path, change]))
  return [...all.values()].filter(
    ({ path }) =>
      allows(folders, posix.join(pathOf(repo) || '.', path), 'read')
      && !(copied && Object.hasOwn(origins, path) && origins[path]?.[0] === id),
  )
}

const places = (repo: string, changes: readonly GitChange[]): string[] =>
  changes.map(({ path }) => posix.join(pathOf(repo) || '.', path))

/** One line of the note. */
const lineOf = (changes: readonly GitChange[], state: UncommittedChanges): string => {
  const { repo, branch, remote, operation, truncated = 0 } = state
  const distance = [
    ...(remote && remote.ahead > 0 ? [`${remote.ahead} ahead`] : []),
    ...(remote && remote.behind > 0 ? [`${remote.behind} behind`] : []),
    ...(operation === undefined ? [] : [`in a ${operation}`]),
  ].map(each => `, ${each}`)
  const named = changes.slice(0, MOST_NAMED).map(({ path, status }) => `${LETTERS[status]} ${path}`)
  const more = changes.length - named.length + truncated
  const listed = [...named, ...(more > 0 ? [`${more} more`] : [])].join(', ')
  return asData(`${repo} (${branch ?? 'no branch'}${distance.join('')}): ${listed || 'nothing'}`, MOST_LINE)
}

const OWN =
  'The workspace, which you work in, held changes that were not committed when this conversation began. They are other '
  + "people's: build on them, and do not revert, restage or commit them."
const APART =
  'This private copy was made from the last commit. The workspace has changes on top that are not committed, so they '
  + 'are not here, and your work must fit them when it lands. If the task needs them, say that a person has to commit '
  + 'them first.'

/** The note and the notice of what is not committed; undefined: all that the conversation may know of is. */
export const uncommittedNote = (
  repos: readonly UncommittedChanges[],
  told: ToldConversation,
): Uncommitted | undefined => {
  const found = repos
    .filter(({ repo, error }) => error === undefined && (!told.copied || told.copied.includes(repo)))
    .map(state => ({ state, changes: changesIn(state, told) }))
    .filter(({ changes }) => changes.length > 0)
  if (found.length === 0) return undefined
  const lines = found.map(({ state, changes }) => `- ${lineOf(changes, state)}`)
  const more = lines.length - MOST_LINES
  const shown = more > 0 ? [...lines.slice(0, MOST_LINES - 1), `- ${more + 1} more repositories`] : lines
  const note = {
    title: told.copied ? 'Not committed in the workspace' : 'Uncommitted changes',
    text: [told.copied ? APART : OWN, ...shown].join('\n'),
  }
  if (!told.copied) return { note }
  const files = found.flatMap(({ state: { repo }, changes }) => places(repo, changes))
  const [one, is] = files.length === 1 ? ['file', 'is'] : ['files', 'are']
  const names = files.slice(0, MOST_LINES).join(', ') + (files.length > MOST_LINES ? ', …' : '')
  const notice =
    `this copy starts from the last commit: ${files.length} uncommitted ${one} of the workspace ${is} not in it `
    + `(${names}); commit what the agent should see`
  return { note, notice }
}

/** What of the workspace is not committed; nothing where that is not known in time. */
export const uncommittedChanges = async (
  host: Pick<Host, 'call' | 'serves' | 'log'>,
): Promise<readonly UncommittedChanges[]> => {
  if (!(await host.serves('GET /git/changes'))) return []
  const signal = AbortSignal.timeout(STATUS_MS)
  const asked = host.call('GET /git/changes', {}, { signal })
  const { repos } = await unlessAborted(signal, asked).catch((error: unknown) => {
    // A turn does not wait for a large workspace, nor fail with it.
    if (!signal.aborted) host.log.warn('uncommitted changes are not known', { error: Refusal.from(error).message })
    return { repos: [] }
  })
  return repos
}
