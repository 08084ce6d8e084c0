import { isAbsolute, resolve } from 'node:path'
import type { Host, ReachFolder } from '../../../sdk/index.js'
import type { TurnPersona } from '../../personas/contract.js'
import type { SkillsAsked, TurnSkill } from '../../skills/contract.js'
import type { ReadSkill } from '../tools/tool.js'
import type { PreparedTurn } from '../turn/environment/environment.js'

type SkillHost = Pick<Host, 'call' | 'serves'>

const asked = (
  persona: Pick<TurnPersona, 'id' | 'powers' | 'capabilities'> | undefined,
  folders: readonly ReachFolder[] | undefined,
): SkillsAsked => ({
  ...(persona && {
    ...{ persona: persona.id, extensions: persona.powers.extensions, capabilities: persona.capabilities },
  }),
  ...(folders && { folders: folders.map(folder => ({ ...folder })) }),
})

/** The skills that a turn may use; one whose card does not exist has none. */
export const skillsOf = async (
  host: SkillHost,
  persona: TurnPersona | undefined,
  folders: readonly ReachFolder[] | undefined,
): Promise<readonly TurnSkill[]> => {
  if (persona?.known === false || !(await host.serves('skills.forTurn'))) return []
  return (await host.call('skills.forTurn', asked(persona, folders))).skills
}

/** Reads the skills that were offered to a turn when it began. */
export const readSkill =
  (host: SkillHost, { skills = [], persona, folders }: PreparedTurn, workspace: string): ReadSkill =>
  async (name, file) => {
    const known = skills.find(each => each.name === name)
    const read = await host.call('skills.text', {
      ...asked(persona, folders),
      // A skill that was not offered is refused like one that is gone.
      name: known?.name ?? '',
      ...(file !== undefined && { file }),
    })
    const folder = known?.folder
    const isSeen = folder !== undefined && (!folders || isAbsolute(folder))
    return { ...read, ...(isSeen && { folder: resolve(workspace, folder) }) }
  }
