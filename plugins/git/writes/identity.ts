import type { Caller } from '../../../sdk/index.js'
import { LOCAL_OWNER } from '../../../sdk/node/access/local-domain.js'
import type { Identity } from '../../../sdk/node/programs/git.js'
import { personalIdentity } from '../../../sdk/node/wall/home.js'
import { gitSettings } from '../remotes/settings.js'
import type { RepoGit } from '../repositories/repo-git.js'

/** Who writes where no person is known. */
export const SANDBOX_WRITER: Identity = { name: 'sandbox', email: 'sandbox@localhost' }

/** A name as a commit may have it. */
export const commitName = (text: string): string => text.replace(/[<>\x00-\x1f\x7f]/g, '').trim()

/**
 * The author of a write: from the repository's settings, otherwise the person, otherwise the sandbox. Of the owner of
 * this machine, who has no address, their own settings of git say it.
 */
export const identityFor = async (git: RepoGit, { email, name }: Caller): Promise<Identity> => {
  const settings = new Map(await gitSettings(git, '^user\\.(name|email)$'))
  const own = email === undefined ? SANDBOX_WRITER : { name: commitName(name ?? '') || email, email }
  if (email === LOCAL_OWNER && !(settings.get('user.name') && settings.get('user.email'))) {
    const personal = await personalIdentity()
    if (commitName(personal.name) && commitName(personal.email))
      Object.assign(own, { name: commitName(personal.name), email: commitName(personal.email) })
  }
  return {
    name: commitName(settings.get('user.name') ?? '') || own.name,
    email: commitName(settings.get('user.email') ?? '') || own.email,
  }
}
