import type { PersonaPointer } from '../../personas/contract.js'
import type { Conversation } from '../contract.js'

/** The conversations that wear a persona, as its uses. */
export const personaPointers = (conversations: readonly Conversation[]): PersonaPointer[] =>
  conversations.flatMap(({ id, title, actsAs, startIn, folders }) => {
    if (actsAs === undefined) return []
    const place = { ...(startIn !== undefined && { startIn }), ...(folders && { folders: [...folders] }) }
    return [{ kind: 'conversation' as const, id, label: title ?? id, persona: actsAs, ...place }]
  })
