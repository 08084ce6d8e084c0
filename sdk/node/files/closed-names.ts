/**
 * What a file system may take for the same name: it may fold case or composition, drop invisible characters or ignore
 * trailing dots.
 */
export const foldedName = (segment: string): string =>
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
