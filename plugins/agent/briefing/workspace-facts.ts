import { release, type } from 'node:os'
import type { Settings } from '../../settings/contract.js'
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

/** Where a turn runs. */
export interface TurnPlace {
  readonly repositories: readonly SeenRepository[]
  /** The folder that it starts in, from the root of the workspace. */
  readonly startIn?: string | undefined
  /** The network of its programs. */
  readonly network: Pick<Settings, 'network' | 'networkAllow' | 'networkOnly'>
}

const MOST_HOSTS = 20

/** What programs of a turn reach, in a sentence. */
const networkFacts = ({ network, networkAllow, networkOnly }: TurnPlace['network']): string => {
  const allowed = networkAllow.slice(0, MOST_HOSTS).join(', ')
  if (network === 'shared') return 'Programs have the network of this machine.'
  if (networkOnly)
    return allowed === '' ? 'Programs reach no other machine.' : `Programs reach these hosts and no others: ${allowed}.`
  return (
    'Programs reach public addresses, and neither this machine nor private networks'
    + `${allowed === '' ? '' : `, except ${allowed}`}; what they serve on localhost is seen in this conversation only.`
  )
}

/** What a model should know of where it works: the date, and if given repositories, branches, machine and network. */
export const workspaceFacts = (at: number, place: TurnPlace | undefined): string => {
  const today = `Today is ${new Date(at).toISOString().slice(0, 10)} (UTC).`
  if (!place) return today
  const { repositories } = place
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
    `The machine runs ${type()} ${release()} (${process.arch}); the shell is /bin/sh.`,
    ...(place.startIn === undefined ? [] : [`Commands start in the folder ${JSON.stringify(place.startIn)}.`]),
    networkFacts(place.network),
  ].join(' ')
}
