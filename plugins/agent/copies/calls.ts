import type { Handlers } from '../../../sdk/index.js'
import type { Conversations } from '../conversations/conversations.js'
import type { CopyCalls } from './contract.js'
import type { LocalTurnEnvironment } from '../turn/environment/local-environment.js'
import { tipAlone } from './states.js'
import type { Copies } from './copies.js'
import { packageChecks } from './package-checks.js'

/** Serves private copies to the groups that show and land them. */
export const copyCalls = (
  workspace: string,
  copies: Copies,
  conversations: Conversations,
  environment: Pick<LocalTurnEnvironment, 'checking'>,
): Handlers<CopyCalls> => ({
  'checkouts.repositories': async () => ({ repos: (await copies.repositories()).map(({ repo }) => repo) }),
  'checkouts.snapshot': async () => ({
    repos: (await copies.repositories()).map(({ repo, head }) => ({ repo, base: head })),
  }),
  'checkouts.repos': async ({ id }) => {
    const { branch, repos } = conversations.get(id)
    return { repos: branch ? await copies.resolve(id, repos) : [] }
  },
  'checkouts.uncommitted': async ({ id, path }) => ({
    files: await copies.uncommitted(conversations.get(id).id, path),
  }),
  'checkouts.commitRest': async ({ id }) => {
    const { branch, repos } = conversations.get(id)
    if (!branch) return { tips: [], repos: [] }
    const all = await copies.commitRest(id, repos)
    const tips = all.map(tipAlone).map(({ apart: _, ...tip }) => tip)
    return { tips, repos: await copies.resolve(id, conversations.get(id).repos), branch }
  },
  'checkouts.sync': async ({ id }) => {
    const { branch, repos } = conversations.get(id)
    if (!branch) return { reports: [], repos: [] }
    const { repos: moved, reports } = await copies.sync(id, repos)
    await conversations.update(id, { repos: moved })
    return { reports, repos: await copies.resolve(id, moved) }
  },
  'checkouts.content': async ({ id }) => {
    const { branch, repos = [] } = conversations.find(id) ?? {}
    return (await copies.content(branch && id, repos)) ?? {}
  },
  'checkouts.walled': async ({ id, ...asked }) => environment.checking(conversations.get(id), asked),
  'checkouts.packageChecks': async ({ id, paths }) => {
    const { branch } = conversations.get(id)
    return { checks: await packageChecks(branch ? copies.dir(id) : workspace, paths) }
  },
})
