/** What a file system may take for the same name: it may fold case, drop invisible characters or ignore trailing dots. */
const folded = (segment: string): string =>
  segment.normalize('NFC').toLowerCase()
    .replace(/[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '').replace(/[. ]{1,255}$/, '')

/** Whether a workspace path leads to what belongs to git or to the sandbox. */
export const isClosedName = (segments: readonly string[]): boolean =>
  segments.some((segment, at) => folded(segment) === '.git' || (at === 0 && folded(segment) === '.sandbox'))
