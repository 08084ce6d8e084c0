import { refuse } from '../../../sdk/index.js'
import { isClosedName } from '../../../sdk/node/files/closed-names.js'
import { segmentsOf } from '../../../sdk/node/files/paths.js'

/** Characters and sequences that no ref name may contain (git-check-ref-format(1)). */
const BAD = /[\x00-\x20\x7f~^:?*[\\]|\.\.|@\{|\/\/|^\/|\/$|^\.|\/\.|\.$|\.lock(?:\/|$)|^-|^@$/

/** Whether git accepts this as the name of a branch, a tag or a remote. */
export const isRefName = (name: string): boolean => name.isWellFormed() && !BAD.test(name)

/** The name; refuses an invalid one with the reason. */
export const checkedRef = (name: string, field = 'name'): string => {
  if (isRefName(name)) return name
  const expected = 'a name that git check-ref-format accepts, not beginning with -'
  return refuse('invalid', `${field}: expected ${expected}, found ${JSON.stringify(name.slice(0, 80))}`, {
    errors: [{ path: field, expected, value: name.slice(0, 200) }],
  })
}

/** A path of a repository in its normal form; paths of git or the sandbox are not found. */
export const checkedPath = (repo: string, path: string): string => {
  const segments = segmentsOf(path, { existing: true })
  if (isClosedName(repo === 'root' ? segments : [repo, ...segments]))
    refuse('not-found', `nothing in ${repo} is named ${path}`)
  return segments.join('/')
}

/** Whether a call can name this path: it is UTF-8, and not closed. */
export const isOpenPath = (repo: string, path: string): boolean =>
  !path.includes('\ufffd') && !isClosedName(repo === 'root' ? path.split('/') : [repo, ...path.split('/')])

/** Whether a listed path may be shown: one that is not UTF-8 is shown with U+FFFD. */
export const isShownPath = (repo: string, path: string): boolean =>
  !isClosedName(repo === 'root' ? path.split('/') : [repo, ...path.split('/')])
