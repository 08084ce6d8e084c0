import type { Host } from '../../../sdk/index.js'
import type { TurnPersona } from '../../personas/contract.js'
import type { TurnSkill } from '../../skills/contract.js'
import { skillsNote } from '../personas/worn.js'
import type { Around } from '../tools/tree.js'
import { needNotes } from '../turn/environment/needs.js'
import type { TurnNote } from '../turn/frames/frames.js'
import { notesOf, type NoteFacts } from '../turn/preamble.js'
import type { Turn } from '../turn/turn.js'

/** What the notes of a turn are made of. */
export interface TurnNoteParts {
  readonly skills: readonly TurnSkill[]
  readonly persona: TurnPersona | undefined
  /** The workspace around the repositories of its copy. */
  readonly around: Around | undefined
  readonly facts: NoteFacts
  /** Notes of connections and extensions, and those that the settings ask for. */
  readonly more: { readonly before: readonly TurnNote[]; readonly after: readonly TurnNote[] }
}

/** The notes before the message of a turn; a turn that goes on after a restart has those that it began with. */
export const turnNotes = async (
  host: Pick<Host, 'call' | 'serves'>,
  turn: Turn,
  { skills, persona, around, facts, more }: TurnNoteParts,
): Promise<TurnNote[]> => {
  const { editorContext } = turn.message.input
  const told = turn.index === 0 && persona?.notes.includes('context') !== false
  return (
    turn.record.notes ?? [
      ...skillsNote(skills, persona),
      ...more.before,
      ...(await needNotes(host, turn.conversationId, turn.run)),
      ...notesOf({
        ...facts,
        ...(told && around && { repositories: around.repos }),
        ...(editorContext && { editorContext }),
      }),
      ...more.after,
    ]
  )
}
