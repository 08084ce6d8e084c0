import { join, relative } from 'node:path'
import { commonReach, reachOf, refuse, type Host, type ReachFolder } from '../../../sdk/index.js'
import { NO_POWERS, withheldBy } from '../../../sdk/node/access/powers.js'
import { withoutNear, type NetworkReach } from '../../../sdk/node/network/policy.js'
import { contains } from '../../../sdk/node/files/paths.js'
import { record } from '../../../sdk/node/record/record.js'
import { wallKind, type WallSpec } from '../../../sdk/node/wall/wall.js'
import type { TurnPersona } from '../../personas/contract.js'
import type { TurnSkill } from '../../skills/contract.js'
import type { OfferedTool, TurnRequest } from '../providers/adapter.js'
import type { ReferenceUser } from '../secrets/bound-values.js'
import type { PreparedTurn } from '../turn/environment/environment.js'
import type { TurnNote } from '../turn/frames/frames.js'
import type { Turn } from '../turn/turn.js'

type PersonaHost = Pick<Host, 'call' | 'serves' | 'log'>

/** Stands in for a persona that does not exist: no account, and no powers. */
const unknownPersona = (id: string): TurnPersona => ({
  id,
  known: false,
  powers: { ...NO_POWERS, connectors: [], devices: [], mcp: [], extensions: [] },
  capabilities: [],
  folders: [],
  notes: [],
  models: [],
})

/** What the card of its conversation's persona gives a turn; undefined: there is no persona. */
export const personaOf = async (host: PersonaHost, actsAs: string | undefined): Promise<TurnPersona | undefined> => {
  if (actsAs === undefined) return undefined
  if (!(await host.serves('personas.forTurn'))) return unknownPersona(actsAs)
  const persona = await host.call('personas.forTurn', { actsAs })
  const kept = persona.powers.files !== 'write' || persona.folders !== undefined || persona.repos !== undefined
  if (persona.known && kept && (await wallKind()) === 'none')
    refuse(
      'conflict',
      `this machine has no wall that keeps a turn to what persona ${actsAs} may do with files: install bubblewrap `
        + '(apt-get install bubblewrap)',
    )
  return persona
}

/** Reports in the run and in the activity record that a turn names a persona that does not exist. */
export const reportUnknownPersona = (host: PersonaHost, turn: Turn, { id, known }: TurnPersona): void => {
  if (known) return
  const text = `there is no persona ${id}: this turn has no account and no tools`
  turn.log.push({ kind: 'notice', level: 'warning', text })
  const { conversationId } = turn
  void record(host, {
    type: 'persona.unknown',
    outcome: 'error',
    actor: `conversation:${conversationId}`,
    conversationId,
    extra: { id },
  })
}

/** Limits the folders of a turn further to those of its persona. */
export const keptFolders = (
  persona: TurnPersona | undefined,
  folders: readonly ReachFolder[] | undefined,
): readonly ReachFolder[] | undefined => {
  if (!persona) return folders
  const { powers, folders: named } = persona
  if (powers.files === 'none') return []
  const access = powers.files === 'write' ? 'work' : 'read'
  return commonReach(folders, named && reachOf(named.map(path => ({ path, access }))))
}

/** Limits the wall of a turn for its persona: read-only, and without repositories that the card does not name. */
export const walledFor = (
  persona: TurnPersona | undefined,
  { workspace, hide = [], copy }: Omit<WallSpec, 'cwd' | 'env'>,
  repositories: readonly { readonly repo: string }[],
): Pick<WallSpec, 'sealed' | 'hide' | 'copy'> => {
  if (!persona) return {}
  const { repos, powers } = persona
  const unseen = repos
    ? repositories.filter(({ repo }) => repo !== 'root' && !repos.includes(repo)).map(({ repo }) => repo)
    : []
  return {
    ...(powers.files !== 'write' && { sealed: true }),
    ...(unseen.length > 0 && { hide: [...hide, ...unseen.map(repo => join(workspace, repo))] }),
    ...(unseen.length > 0
      && copy && { copy: { ...copy, gitdirs: copy.gitdirs.filter(({ path }) => !unseen.includes(path)) } }),
  }
}

/** The paths from the workspace root that a wall hides in it. */
export const hiddenBy = ({ workspace, hide = [] }: Pick<WallSpec, 'workspace' | 'hide'>): string[] =>
  hide.filter(path => path !== workspace && contains(workspace, path)).map(path => relative(workspace, path))

/** The fields of the request to a provider that come from the persona of a turn, or else from the settings. */
export const requestedBy = ({
  persona,
  instructions = persona?.instructions,
  facts,
  project,
  commands,
}: PreparedTurn): Pick<TurnRequest, 'powers' | 'instructions' | 'facts' | 'project' | 'commands'> => ({
  ...(persona && { powers: persona.powers }),
  ...(instructions !== undefined && { instructions }),
  ...(facts !== undefined && { facts }),
  ...(project && project.text !== '' && { project: project.text }),
  ...(commands && { commands }),
})

/**
 * The addresses that a turn may reach: without the power to run programs no ports of its own and no private addresses.
 */
export const fetchReach = (
  persona: TurnPersona | undefined,
  reach: () => Promise<NetworkReach>,
): (() => Promise<NetworkReach>) => {
  if (!persona || persona.powers.shell) return reach
  return async () => withoutNear(await reach(), 'the persona of this turn runs no programs (powers.shell)')
}

/** The limits of a persona on the use of stored values. */
export const usedBy = (persona: TurnPersona | undefined): Pick<ReferenceUser, 'persona' | 'capabilities'> =>
  persona ? { persona: persona.id, capabilities: persona.capabilities } : {}

/** The tools that a persona permits. */
export const toolsFor = (persona: TurnPersona | undefined, tools: readonly OfferedTool[]): readonly OfferedTool[] =>
  persona ? tools.filter(({ name, category }) => withheldBy(persona.powers, name, category) === undefined) : tools

const MOST_LIST = 20_000

/** The note that names the skills of a turn, unless its persona leaves it out. */
export const skillsNote = (skills: readonly TurnSkill[], persona: TurnPersona | undefined): TurnNote[] => {
  if (skills.length === 0 || persona?.notes.includes('skills') === false) return []
  const lines = skills.map(({ name, description }) => `- ${name}${description ? `: ${description}` : ''}`).join('\n')
  const list = lines.length > MOST_LIST ? `${lines.slice(0, MOST_LIST).toWellFormed()}\n- …` : lines
  const text = `Read a skill with the tool Skill before you do what it is for.\n${list}`
  return [{ title: 'Skills', text }]
}
