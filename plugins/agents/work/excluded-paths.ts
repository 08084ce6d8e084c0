import { isGitName, isOwnName } from '../../../sdk/node/files/closed-names.js'
import { TEMPORARY } from '../../../sdk/node/files/files.js'

const INBOX = '.sandbox/config/workspace-extensions/'

/**
 * Whether a path is never work of an agent: below a git folder or the sandbox's own, in any spelling, what a write cut
 * short left behind, or no path at all.
 *
 * `repo` is `root` or the repository's path from the workspace root.
 */
export const excludedPaths = (repo: string, path: string): boolean => {
  const segments = path.split('/')
  if (segments.some(segment => segment === '' || segment === '.' || segment === '..' || isGitName(segment))) return true
  if (segments.at(-1)!.startsWith(TEMPORARY)) return true
  const whole = repo === 'root' ? path : `${repo}/${path}`
  return isOwnName(whole.split('/')[0]!) && !whole.startsWith(INBOX)
}

/** Whether a name cannot be addressed: it is not Unicode, so what was read is not what is on the disk. */
export const unaddressable = (path: string): boolean => path.includes('\uFFFD')
