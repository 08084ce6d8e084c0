import { TEMPORARY } from '../../sdk/node/files.js'

/** Folds a segment as the path rules compare names: case, composition, invisible characters, trailing dots and spaces. */
const folded = (segment: string): string =>
  segment.normalize('NFKC').replace(/\p{Default_Ignorable_Code_Point}|\p{Cc}|\p{Cf}/gu, '').toLowerCase().replace(/[. ]+$/, '')

const INBOX = '.sandbox/config/workspace-extensions/'

/** The short names under which some file systems also know the git folder. */
const GIT = /^(?:\.git|git~\d+)(?::.*)?$/

/**
 * Whether a path is never work of an agent: below a git folder or the sandbox's own, in any spelling, what a write cut
 * short left behind, or no path at all.
 *
 * `repo` is `root` or the repository's path from the workspace root.
 */
export const neverWork = (repo: string, path: string): boolean => {
  const segments = path.split('/')
  if (segments.some(segment => segment === '' || segment === '.' || segment === '..' || GIT.test(folded(segment)))) return true
  if (segments.at(-1)!.startsWith(TEMPORARY)) return true
  const whole = repo === 'root' ? path : `${repo}/${path}`
  return folded(whole.split('/')[0]!) === '.sandbox' && !whole.startsWith(INBOX)
}

/** Whether a name cannot be addressed: it is not Unicode, so what was read is not what is on the disk. */
export const unaddressable = (path: string): boolean => path.includes('\uFFFD')
