import { refuse } from '../../../sdk/index.js'
import type { Objects } from '../objects/objects.js'
import { nothingLike, treeChanges } from '../objects/tree-changes.js'
import type { GitChange } from '../records.js'
import { limitTo, type OpenRepo } from '../repositories/repositories.js'
import type { StashEntry } from './contract.js'

const FORMAT = '%H%n%h%n%P%n%at%n%gs'
const MOST = 500
const NUMBERED = /^stash@\{\d{1,4}\}$/

/** The entries of the stash, newest first. */
export const stashEntries = async (objects: Objects, opened: OpenRepo): Promise<StashEntry[]> => {
  const { git } = opened
  if ((await objects.read(git, 'refs/stash', 0)) === 'missing') return []
  const walk = ['log', '-z', '-g', '--first-parent', '--no-mailmap', '--encoding=UTF-8']
  const { text } = await git.read([...walk, `--max-count=${MOST}`, `--format=${FORMAT}`, 'refs/stash', '--'])
  const inside =
    opened.only
    && new Set((await git.read([...walk, '-m', '--format=%H', 'refs/stash', ...limitTo(opened)])).text.split('\0'))
  return text
    .split('\0')
    .filter(Boolean)
    .map((record, index) => entryOf(record, index))
    .filter(({ sha }) => !inside || inside.has(sha))
}

const entryOf = (record: string, index: number): StashEntry => {
  const [sha = '', short = '', parents = '', at = '0', ...message] = record.split('\n')
  const said = message.join('\n')
  const made = /^(?:WIP on|On) ((?:.|\n)+?): ((?:.|\n)*)$/.exec(said)
  const branch = made?.[1]
  return {
    ref: `stash@{${index}}`,
    sha,
    short,
    subject: made?.[2] ?? said,
    ...(branch !== undefined && branch !== '(no branch)' && { branch }),
    at: Math.max(0, Number(at) * 1000),
    parents: parents.split(' ').filter(Boolean),
  }
}

/** One entry by its number; with `sha` it must still have that commit. */
export const stashEntry = async (
  objects: Objects,
  opened: OpenRepo,
  ref: string,
  sha: string | undefined,
): Promise<StashEntry> => {
  if (!NUMBERED.test(ref))
    refuse('invalid', `ref: expected stash@{0} to stash@{9999}, found ${ref}`, {
      errors: [{ path: 'ref', expected: 'stash@{0} to stash@{9999}', value: ref }],
    })
  const entries = await stashEntries(objects, opened)
  const index = String(Number(ref.slice('stash@{'.length, -1)))
  const entry = entries.find(each => each.ref === `stash@{${index}}`)
  if (!entry) return refuse('not-found', `${opened.repo} has no entry ${ref} in its stash`)
  if (sha !== undefined && !entry.sha.startsWith(sha))
    refuse('conflict', `${ref} is ${entry.sha} now, expected ${sha}: list the stash again`)
  return entry
}

/** The files of an entry, including untracked ones. */
export const stashFiles = async (opened: OpenRepo, { sha, parents }: StashEntry): Promise<GitChange[]> => {
  const [base = nothingLike(sha), , untracked] = parents
  const tracked = await treeChanges(opened, base, sha)
  return untracked === undefined ? tracked : [...tracked, ...(await treeChanges(opened, nothingLike(sha), untracked))]
}
