import type { TurnPersona } from '../../personas/contract.js'
import type { Conversation } from '../contract.js'
import type { TurnSkill } from '../../skills/contract.js'
import { skillsNote } from '../personas/worn.js'
import type { ProcessAccess } from '../processes/conversation-processes.js'
import { processNotes } from '../processes/process-tools.js'
import type { Around } from '../tools/tree.js'
import type { TurnEnvironmentDeps } from '../turn/environment/environment-deps.js'
import type { TurnNote } from '../turn/frames/frames.js'
import { notesOf, type NoteFacts } from '../turn/preamble.js'
import type { Turn } from '../turn/turn.js'
import { toolNotes, type NoteHost, type ToldTurn } from './tool-notes.js'

/** What the notes of a turn are made of. */
export interface TurnNoteParts {
  readonly skills: readonly TurnSkill[]
  readonly persona: TurnPersona | undefined
  /** The workspace around the repositories of its copy. */
  readonly around: Around | undefined
  readonly facts: NoteFacts
  /** Notes of connections and extensions, and those that the settings ask for. */
  readonly more: { readonly before: readonly TurnNote[]; readonly after: readonly TurnNote[] }
  /** What of the workspace is not committed. */
  readonly uncommitted: TurnNote | undefined
  /** Answers to its needs. */
  readonly answers: readonly TurnNote[]
  readonly folders: ToldTurn['folders']
  readonly allowedTools: ToldTurn['allowedTools']
  /** What it reaches. */
  readonly access: ProcessAccess
  /** It knows the notes of earlier turns. */
  readonly session: Conversation['session']
}

/** The notes before the message of a turn; a turn that goes on after a restart has those that it began with. */
export const turnNotes = async (
  { host, limits, kept }: Pick<TurnEnvironmentDeps, 'host' | 'limits' | 'kept'>,
  turn: Turn,
  { skills, persona, around, facts, more, uncommitted, answers, folders, allowedTools, session, access }: TurnNoteParts,
): Promise<TurnNote[]> => {
  const { attended, input } = turn.message
  const { editorContext } = input
  const { provider, harness } = turn.entry.fields
  const first = turn.index === 0
  const inContext = first && persona?.notes.includes('context') !== false
  // A script knows what it does.
  const teaches = provider !== 'script' && (first || session === undefined)
  return (
    turn.record.notes ?? [
      ...skillsNote(skills, persona),
      ...more.before,
      ...processNotes(kept.processes, turn.conversationId, access),
      ...answers,
      ...notesOf({
        ...facts,
        ...(inContext && around && { repositories: around.repos }),
        ...(editorContext && { editorContext }),
      }),
      ...(uncommitted && persona?.notes.includes('context') !== false ? [uncommitted] : []),
      ...more.after,
      ...(teaches
        ? await taught(host, {
            ...{ native: harness === 'native', attended, persona, folders, allowedTools },
            helpers: await limits(),
          })
        : []),
    ]
  )
}

const taught = async (host: NoteHost, turn: ToldTurn): Promise<TurnNote[]> =>
  (await toolNotes(host, turn)).map(({ title, text }) => ({ title, text }))
