import type { ReachFolder } from '../../../sdk/index.js'
import type { TurnPersona } from '../../personas/contract.js'
import { shortenOutputs, type ShortenOutput } from '../outputs/shorten.js'
import type { Around } from '../tools/tree.js'
import type { PreparedTurn } from '../turn/environment/environment.js'
import type { TurnEnvironmentDeps } from '../turn/environment/environment-deps.js'
import type { TurnNote } from '../turn/frames/frames.js'
import type { Turn } from '../turn/turn.js'
import { briefingOf } from './briefing.js'
import { checkedOutBranch } from './workspace-facts.js'

type BriefDeps = Pick<TurnEnvironmentDeps, 'settings' | 'conversations' | 'copies' | 'host' | 'outputs' | 'log'>

/** The tree of the turn. */
interface BriefedTree {
  readonly root: string
  readonly folders: readonly ReachFolder[] | undefined
  readonly hidden: readonly string[]
  readonly persona: TurnPersona | undefined
  readonly around: Around | undefined
}

/** What the settings change in a turn: its notes, what its programs see, and what is prepared for its tools. */
export interface BriefedSettings {
  readonly notes: readonly TurnNote[]
  readonly shown: readonly { readonly from: string; readonly to: string }[]
  readonly prepared: Pick<PreparedTurn, 'facts' | 'outputs'> & { readonly shorten?: ShortenOutput }
}

/** Applies the settings to a turn that begins; its arms in experiments are stored before it starts. */
export const briefTurn = async (
  { settings: current, conversations, copies, host, outputs, log }: BriefDeps,
  turn: Turn,
  { root, folders, hidden, persona, around }: BriefedTree,
): Promise<BriefedSettings> => {
  const settings = await current()
  const { conversationId, run } = turn
  const folder = await outputs.whole.folder(conversationId)
  const shown = [{ from: folder, to: folder }]
  if (!settings) return { notes: [], shown, prepared: { outputs: folder } }
  const { arms: known, harness, startedAt } = turn.entry.fields
  const conversation = conversations.get(conversationId)
  const { notes, arms, facts } = await briefingOf(settings, {
    ...{ run, conversation, folders, at: startedAt, first: turn.index === 0, native: harness === 'native' },
    ...(persona && { persona }),
    tree: { root, hidden, ...(around && { around }) },
    repositories: (await copies.repositories()).map(({ repo, gitdir }) => {
      const branch = checkedOutBranch(gitdir)
      return { repo, ...(branch !== undefined && { branch }) }
    }),
    searches: await host.serves('workspace.find'),
  })
  if (!known && (arms.terse || arms.search)) await turn.entry.change({ arms })
  if (arms.search && !conversation.searchArm) await conversations.update(conversationId, { searchArm: arms.search })
  const shorten = shortenOutputs(settings, {
    ...{ conversationId, run, log, whole: outputs.whole, ledger: outputs.ledger },
    mask: text => turn.masker.mask(text),
  })
  return {
    ...{ notes, shown },
    prepared: { outputs: folder, ...(facts !== undefined && { facts }), ...(shorten && { shorten }) },
  }
}
