/**
 * What a file system may take for the same name: it may fold case or composition, drop invisible characters or ignore
 * trailing dots.
 */
export const foldedName = (segment: string): string =>
  PRINTABLE.test(segment) ? segment.toLowerCase().replace(/[. ]{1,255}$/, '') : foldedUnicode(segment)

/** Names of which every character stands for itself: most names, for which this is many times faster. */
const PRINTABLE = /^[\x20-\x7e]*$/

const foldedUnicode = (segment: string): string =>
  segment
    .normalize('NFKC')
    .replace(/[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}]/gu, '')
    .toLowerCase()
    .replace(/[. ]{1,255}$/, '')

/** The git folder, also by the short names under which some file systems know it. */
const GIT = /^(?:\.git|git~\d+)(?::.*)?$/

/** Whether a name is that of a git folder, in any spelling. */
export const isGitName = (segment: string): boolean => GIT.test(foldedName(segment))

/** Whether a name is that of the sandbox's own folder, in any spelling. */
export const isOwnName = (segment: string): boolean => foldedName(segment) === '.sandbox'

/** Whether a workspace path leads to what belongs to git or to the sandbox. */
export const isClosedName = (segments: readonly string[]): boolean =>
  segments.some((segment, at) => isGitName(segment) || (at === 0 && isOwnName(segment)))

/** Below the sandbox's own folder, what callers may read. */
const READABLE = [['records', 'artifacts'], ['config']]
/** Of that, where callers may also write. */
const INBOXES = [['records', 'artifacts', 'attachments']]

const begins = (segments: readonly string[], start: readonly string[]): boolean =>
  start.every((name, at) => segments[at] === name)

/**
 * Why a workspace path is not an ordinary one: `closed` to everybody, the `git` folder of a repository below the root,
 * `readable` of the sandbox, or an `inbox` of the sandbox.
 */
export const closedAs = (segments: readonly string[]): 'closed' | 'git' | 'readable' | 'inbox' | undefined => {
  const [first = '', ...rest] = segments
  if (isGitName(first)) return 'closed'
  if (rest.some(isGitName)) return isOwnName(first) ? 'closed' : 'git'
  if (!isOwnName(first)) return undefined
  if (first !== '.sandbox') return 'closed'
  if (INBOXES.some(inbox => rest.length > inbox.length && begins(rest, inbox))) return 'inbox'
  return READABLE.some(readable => begins(rest, readable)) ? 'readable' : 'closed'
}
