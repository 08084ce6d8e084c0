import { posix } from 'node:path'
import { pathOfRepo, Refusal, type Host } from '../../../sdk/index.js'
import type { CheckoutRepo, Conversation } from '../../agent/contract.js'
import type { Origins } from '../contract.js'
import type { Refs } from '../work/git-folders.js'
import { lookAt, type Repository } from '../work/repository.js'
import type { ScratchRepos } from '../work/scratch-repos.js'
import type { LandedMessages } from './landed-messages.js'
import type { LandedOrigins } from './landed-origins.js'
import type { RepoLanding } from './landing.js'

interface LandedBooks {
  readonly origins: LandedOrigins
  readonly messages: LandedMessages
}

const MOST_PATCH = 64 * 1024
const PATCH = ['diff-tree', '-r', '-p', '-M', '--no-color']

/** Called after a landing, with the repositories of the conversation and what became of them. */
export type NoteLanding = (
  conversation: Conversation,
  branch: string,
  repos: readonly CheckoutRepo[],
  done: readonly RepoLanding[],
) => Promise<void>

/** What a landing wrote in one repository. */
interface LandedPart {
  readonly repository: Repository
  readonly from: string
  readonly paths: readonly string[]
}

/** Notes who landed what, and has the message of the commit drafted meanwhile; a failure is logged. */
export const notingLandings =
  (
    host: Pick<Host, 'log' | 'signal'>,
    { origins, messages }: LandedBooks,
    { refs, scratchRepos }: { readonly refs: Refs; readonly scratchRepos: ScratchRepos },
  ): NoteLanding =>
  async (conversation, branch, repos, done) => {
    const { id, title, provider, model } = conversation
    const parts = done.flatMap(({ repo, from, outcome, written: paths = [] }): LandedPart[] => {
      const checkout = repos.find(one => one.repo === repo)
      const repository = paths.length > 0 && checkout && lookAt(refs, checkout, branch, outcome?.landedTip)
      return repository ? [{ repository, from, paths }] : []
    })
    if (parts.length === 0) return
    const patchOf = ({ repository, from }: LandedPart): Promise<string> =>
      scratchRepos.with(
        repository,
        async scratch => (await scratch.git([...PATCH, from, repository.tip])).text.slice(0, MOST_PATCH),
        host.signal,
      )
    try {
      const landing = { conversationId: id, at: Date.now() }
      for (const { repository, paths } of parts) await origins.note(repository.checkout.repo, paths, landing)
    } catch (error) {
      host.log.warn('noting what landed failed', { conversation: id, error: String(error) })
    }
    void messages.draft({
      conversation: id,
      title,
      provider,
      model,
      repos: parts.map(({ repository: { checkout } }) => checkout.repo),
      paths: parts.flatMap(({ repository: { checkout }, paths }) =>
        paths.map(path => posix.join(pathOfRepo(checkout.repo), path)),
      ),
      patch: async () => (await Promise.all(parts.map(patchOf))).join('\n'),
    })
  }

/** Who landed which paths of a repository; conversations that are gone are left out. */
export const originsOf = async (
  host: Pick<Host, 'call'>,
  repo: string,
  { origins, messages }: LandedBooks,
): Promise<Origins> => {
  const paths = await origins.of(repo)
  const ids = new Set(Object.values(paths).flatMap(landings => landings.map(({ conversationId }) => conversationId)))
  const agents: Origins['agents'] = {}
  await messages.opened
  for (const id of ids) {
    const found = await host.call('agent.conversation', { id }).catch((error: unknown) => {
      if (Refusal.from(error).reason === 'not-found') return undefined
      throw error
    })
    if (!found) continue
    const { title, provider, startIn, folders } = found.conversation
    const { landedMessage } = messages.of(id)
    agents[id] = {
      provider,
      ...(title !== undefined && { title }),
      ...(landedMessage && { landedMessage: { ...landedMessage } }),
      ...(startIn !== undefined && { startIn }),
      ...(folders && { folders: folders.map(folder => ({ ...folder })) }),
    }
  }
  const known = Object.entries(paths).flatMap(([path, landings]) => {
    const kept = landings.filter(({ conversationId }) => Object.hasOwn(agents, conversationId))
    return kept.length > 0 ? [[path, kept.map(landing => ({ ...landing }))] as const] : []
  })
  return { paths: Object.fromEntries(known), agents }
}
