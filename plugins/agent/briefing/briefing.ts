import { leads, type Handlers, type ReachFolder } from '../../../sdk/index.js'
import { pathOf } from '../../../sdk/node/repositories/main-repository.js'
import type { TurnPersona } from '../../personas/contract.js'
import type { Settings } from '../../settings/contract.js'
import type { Conversation } from '../contract.js'
import type { Rooted } from '../tools/tree.js'
import type { SubagentLimits } from '../providers/adapter.js'
import type { TurnNote } from '../turn/frames/frames.js'
import { cohortOf, isHeldOut } from './arms.js'
import type { BriefingCalls, TurnArms } from './contract.js'
import { SEARCH_NOTE, SEARCH_TEXT, TERSE_NOTE, TERSE_TEXT } from './taught.js'
import { toolNotes, type NoteHost } from './tool-notes.js'
import { workspaceFacts, type SeenRepository } from './workspace-facts.js'
import { workspaceMap } from './workspace-map.js'

/** The turn that is briefed. */
export interface BriefedTurn {
  readonly run: string
  readonly conversation: Pick<Conversation, 'id' | 'branch' | 'session' | 'searchArm'>
  /** It is the first of its conversation. */
  readonly first: boolean
  /** It runs in the sandbox's own loop, which has the tool `Search` and no instructions of its own. */
  readonly native: boolean
  readonly persona?: TurnPersona
  readonly tree: Rooted
  readonly folders?: readonly ReachFolder[] | undefined
  readonly repositories: readonly SeenRepository[]
  /** Whether this sandbox has a search. */
  readonly searches: boolean
  readonly at: number
}

/** What the settings tell a turn. */
export interface TurnBriefing {
  readonly notes: TurnNote[]
  readonly arms: TurnArms
  /** For the end of the instructions; left out: the notes have it. */
  readonly facts?: string
}

type Briefing = Pick<
  Settings,
  'stableSystemPrompt' | 'terseOutput' | 'terseHoldout' | 'iqSearch' | 'iqSearchHoldout' | 'workspaceMap'
>

/** The cohorts of turns that begin now. */
const cohortsOf = ({ terseHoldout = 0, iqSearchHoldout = 0 }: Partial<Briefing> = {}): {
  readonly terse: string
  readonly search: string
} => ({
  terse: cohortOf(TERSE_TEXT, terseHoldout),
  search: cohortOf(SEARCH_TEXT, iqSearchHoldout),
})

/** The notes that the settings ask for, and the arms of the experiments that are running. */
export const briefingOf = async (
  { stableSystemPrompt, terseOutput, terseHoldout, iqSearch, iqSearchHoldout, workspaceMap: mapped }: Briefing,
  turn: BriefedTurn,
): Promise<TurnBriefing> => {
  const { run, conversation, first, native, persona, tree, folders, at } = turn
  const may = (note: TurnPersona['notes'][number]) => persona?.notes.includes(note) !== false
  const seen = seenBy(turn)
  const facts = native ? workspaceFacts(at, may('context') ? seen : undefined) : undefined
  const cohorts = cohortsOf({ terseHoldout, iqSearchHoldout })
  const terse = terseOutput ? { on: !isHeldOut('terse', run, terseHoldout), cohort: cohorts.terse } : undefined
  const teaches = iqSearch && native && turn.searches && may('search')
  const known = conversation.searchArm
  // A conversation that began before is taught, and not compared.
  const drawn = first
    ? { on: !isHeldOut('search', conversation.id, iqSearchHoldout), cohort: cohorts.search }
    : { on: true, cohort: 'began before' }
  const search = teaches ? (known ?? drawn) : undefined
  // Without a session the model does not know what earlier turns were taught.
  const taught = search?.on && (known === undefined || conversation.session === undefined)
  const map =
    mapped && first && may('map')
      ? await workspaceMap(
          { ...tree, ...(folders && { folders }) },
          seen.map(({ repo }) => repo),
        )
      : undefined
  return {
    notes: [
      ...(facts !== undefined && stableSystemPrompt ? [{ title: 'Workspace', text: facts }] : []),
      ...(map === undefined ? [] : [{ title: 'Map', text: map }]),
      ...(taught ? [SEARCH_NOTE] : []),
      ...(terse?.on ? [TERSE_NOTE] : []),
    ],
    arms: { ...(terse && { terse }), ...(search && { search }) },
    ...(facts !== undefined && !stableSystemPrompt && { facts }),
  }
}

/** The repositories that the turn sees; those of a private copy are on its branch. */
const seenBy = ({ repositories, conversation: { branch }, folders, persona, tree }: BriefedTurn): SeenRepository[] =>
  repositories
    .filter(({ repo }) => leads(folders, pathOf(repo) || '.'))
    .filter(({ repo }) => repo === 'root' || !persona?.repos || persona.repos.includes(repo))
    .map(({ repo, branch: own }) => {
      const copied = branch !== undefined && (!tree.around || tree.around.repos.includes(pathOf(repo)))
      const name = copied ? branch : own
      return { repo, ...(name !== undefined && { branch: name }) }
    })

/** Serves which experiments are running, and which notes a turn would have. */
export const briefingCalls = (
  host: NoteHost,
  settings: () => Promise<Settings | undefined>,
  limits: () => Promise<SubagentLimits>,
): Handlers<BriefingCalls> => ({
  'agent.cohorts': async () => cohortsOf(await settings()),
  'agent.notes': async ({ persona, unattended }) => {
    const { workspaceMap: mapped = false, iqSearch = false } = (await settings()) ?? {}
    const { folders: paths } = persona
    const told = await toolNotes(host, {
      ...{ native: true, attended: !unattended, persona, helpers: await limits() },
      ...(paths && { folders: paths.map(path => ({ path, access: 'work' as const })) }),
    })
    const searches = iqSearch && (await host.serves('workspace.find'))
    const notes = [...(mapped ? ['map' as const] : []), ...(searches ? ['search' as const] : [])]
    return { notes: [...notes.filter(note => persona.notes.includes(note)), ...told.map(({ note }) => note)] }
  },
})
