import { isGitName, isOwnName } from '../../../sdk/node/files/closed-names.js'
import { TEMPORARY } from '../../../sdk/node/files/files.js'

const INBOX = '.sandbox/config/workspace-extensions/'

/**
 * Whether a path is never part of an agent's work: in `.git` or `.sandbox` in any spelling, a temporary file of an
 * interrupted write, or not a valid path.
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
