import type { WallSpec } from '../../../sdk/node/wall/wall.js'
import type { ReachFolder } from '../../../sdk/index.js'
import type { TurnSkill } from '../../skills/contract.js'
import type { TurnPersona } from '../../personas/contract.js'
import { shortenOutputs, type ShortenOutput } from '../outputs/shorten.js'
import { FolderInstructions, projectInstructions } from '../instructions/project-instructions.js'
import { workspaceCommands } from '../instructions/workspace-commands.js'
import type { Around, Rooted } from '../tools/tree.js'
import type { PreparedTurn } from '../turn/environment/environment.js'
import type { TurnEnvironmentDeps } from '../turn/environment/environment-deps.js'
import type { TurnNote } from '../turn/frames/frames.js'
import { aroundOf } from '../turn/environment/shell.js'
import { hiddenBy } from '../personas/worn.js'
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
  readonly skills: readonly TurnSkill[]
}

/** What the settings change in a turn: its notes, what its programs see, and what is prepared for its tools. */
export interface BriefedSettings {
  readonly notes: readonly TurnNote[]
  readonly shown: readonly { readonly from: string; readonly to: string }[]
  readonly prepared: Pick<PreparedTurn, 'facts' | 'outputs' | 'project' | 'commands'> & {
    readonly shorten?: ShortenOutput
  }
}

/** Applies the settings to a turn that begins; its arms in experiments are stored before it starts. */
export const briefTurn = async (
  { settings: current, conversations, copies, host, outputs, log }: BriefDeps,
  turn: Turn,
  { root, folders, hidden, persona, around, skills }: BriefedTree,
): Promise<BriefedSettings> => {
  const settings = await current()
  const { conversationId, run } = turn
  const { arms: known, harness, startedAt } = turn.entry.fields
  const shorten =
    settings
    && shortenOutputs(settings, {
      ...{ conversationId, run, log, whole: outputs.whole, ledger: outputs.ledger },
      mask: text => turn.masker.mask(text),
    })
  // A program that sees a folder of one conversation serves no other one.
  const folder = harness === 'native' || shorten ? await outputs.whole.folder(conversationId) : undefined
  const kept = folder === undefined ? {} : { outputs: folder }
  const shown = folder === undefined ? [] : [{ from: folder, to: folder }]
  const tree: Rooted = { root, hidden: [...hidden], ...(folders && { folders }), ...(around && { around }) }
  const brought = await broughtBy(turn, tree, skills, conversations.get(conversationId).startIn)
  if (!settings) return { notes: [], shown, prepared: { ...kept, ...brought } }
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
  return {
    ...{ notes, shown },
    prepared: { ...kept, ...brought, ...(facts !== undefined && { facts }), ...(shorten && { shorten }) },
  }
}

/** Whether a turn runs on a model in the sandbox's own loop, which reads no files by itself. */
const readsNothing = ({ entry: { fields } }: Turn): boolean =>
  fields.harness === 'native' && fields.provider !== 'script'

/** What the code brings along for a turn in the sandbox's own loop. */
const broughtBy = async (
  turn: Turn,
  tree: Rooted,
  skills: readonly TurnSkill[],
  startIn = '.',
): Promise<Pick<PreparedTurn, 'project' | 'commands'>> => {
  if (!readsNothing(turn)) return {}
  const [found, commands] = await Promise.all([projectInstructions(tree, startIn), workspaceCommands(tree, skills)])
  if (turn.index === 0 && !turn.record.prepared)
    for (const text of found.problems) turn.log.push({ kind: 'notice', level: 'warning', text, source: 'instructions' })
  // Files of the code may hold stored values.
  return turn.masker.maskJson({ project: found, commands })
}

/** What each agent of a turn is told of folders that it comes to; undefined: its program reads files itself. */
export const instructedIn = (
  { root, folders, project }: PreparedTurn,
  wall: Omit<WallSpec, 'cwd' | 'env'>,
): (() => FolderInstructions) | undefined => {
  const around = aroundOf(wall)
  const tree = { root, hidden: hiddenBy(wall), ...(folders && { folders }), ...(around && { around }) }
  return project && (() => new FolderInstructions(tree, project.folders))
}
