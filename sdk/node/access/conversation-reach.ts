import { accessTo, allows, type Access, type ReachFolder } from '../../reach.js'
import { refuse } from '../../refusal.js'
import { refuseReading, type AccessView } from './access-view.js'
import type { WorkspacePaths } from '../files/workspace-paths.js'

/**
 * Where a conversation works: where its turns start, and the folders they are kept to; left out: the whole workspace.
 */
export interface ConversationPlace {
  readonly startIn?: string
  readonly folders?: readonly ReachFolder[]
}

const WHOLE: readonly ReachFolder[] = [{ path: '.', access: 'work' }]

/** Whether somebody reaches all that turns kept to these folders could see; left out: turns of the whole workspace. */
export const reachesAll = ({ reach }: Pick<AccessView, 'reach'>, folders = WHOLE): boolean =>
  folders.every(({ path }) => accessTo(reach, path) !== undefined)

/** Whether somebody may do all that turns kept to these folders may do; left out: turns of the whole workspace. */
export const worksEverywhere = ({ reach }: Pick<AccessView, 'reach'>, folders = WHOLE): boolean =>
  folders.every(({ path, access }) => allows(reach, path, access))

/**
 * What somebody may do with a conversation: what they may do where it starts; undefined: it does not exist for them.
 *
 * Whatever its turns could see may stand in it, so it takes reach of every folder they are kept to.
 */
export const accessToConversation = async (
  seen: AccessView,
  conversation: ConversationPlace,
): Promise<Access | undefined> =>
  reachesAll(seen, conversation.folders) ? seen.access(conversation.startIn) : undefined

/** Refuses a conversation that does not exist for a caller, with the message for one that nobody has. */
export const refuseUnknown = (id: string): never =>
  refuse('not-found', `there is no conversation ${JSON.stringify(id.slice(0, 64))}`)

/** Refuses a conversation that a caller may not see, and with `works` one in an area held for reading. */
export const assertVisible = async (
  seen: AccessView,
  conversation: ConversationPlace & { readonly id: string },
  works: boolean,
): Promise<void> => {
  const { id } = conversation
  const access = await accessToConversation(seen, conversation)
  if (access === undefined) refuseUnknown(id)
  if (works && access === 'read') refuseReading(id)
}

/** The places of which somebody must reach all for a conversation to exist for them; undefined: it starts nowhere. */
export const placesOfConversation = async (
  places: Pick<WorkspacePaths, 'of'>,
  { startIn, folders = WHOLE }: ConversationPlace,
): Promise<string[] | undefined> => {
  const start = await places.of(startIn)
  return start === undefined ? undefined : [...new Set([start, ...folders.map(({ path }) => path)])]
}
