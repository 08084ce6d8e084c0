import type { Caller } from '../../../sdk/index.js'
import type { Identity } from '../../../sdk/node/programs/git.js'
import { gitSettings } from '../remotes/settings.js'
import type { RepoGit } from '../repositories/repo-git.js'

/** Who writes where no person is known. */
export const SANDBOX_WRITER: Identity = { name: 'sandbox', email: 'sandbox@localhost' }

/** A name as a commit may have it. */
export const commitName = (text: string): string => text.replace(/[<>\x00-\x1f\x7f]/g, '').trim()

/** The author of a write: from the repository's settings, otherwise the person, otherwise the sandbox. */
export const identityFor = async (git: RepoGit, { email, name }: Caller): Promise<Identity> => {
  const settings = new Map(await gitSettings(git, '^user\\.(name|email)$'))
  const own = email === undefined ? SANDBOX_WRITER : { name: commitName(name ?? '') || email, email }
  return {
    name: commitName(settings.get('user.name') ?? '') || own.name,
    email: commitName(settings.get('user.email') ?? '') || own.email,
  }
}
