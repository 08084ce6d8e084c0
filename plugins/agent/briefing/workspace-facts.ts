import { readPlain } from '../../../sdk/node/files/files.js'

/** A repository that a turn sees. */
export interface SeenRepository {
  readonly repo: string
  /** Its branch; left out: a commit is checked out. */
  readonly branch?: string
}

const MOST_NAMED = 30
/** A name as git allows it (git-check-ref-format(1)): no words of a sentence. */
const BRANCH = /^ref: refs\/heads\/([^\x00-\x20\x7f~^:?*[\\]{1,250})\n?$/

/** The branch that a git dir has checked out; undefined: none. */
export const checkedOutBranch = (gitdir: string): string | undefined =>
  BRANCH.exec(readPlain(`${gitdir}/HEAD`) ?? '')?.[1]

/** What changes between turns and a model should know: the date, and the repositories and their branches if given. */
export const workspaceFacts = (at: number, repositories: readonly SeenRepository[] | undefined): string => {
  const today = `Today is ${new Date(at).toISOString().slice(0, 10)} (UTC).`
  if (!repositories) return today
  const named = repositories
    .slice(0, MOST_NAMED)
    .map(({ repo, branch }) => `${repo}${branch === undefined ? '' : ` (branch ${branch})`}`)
  const more = repositories.length - named.length
  const list = more > 0 ? [...named, `${more} more`] : named
  return [
    today,
    repositories.length === 0
      ? 'The workspace holds no repository with a commit.'
      : `Repositories of the workspace: ${list.join(', ')}.`,
  ].join(' ')
}
