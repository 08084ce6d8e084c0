import { accessTo, allows, type Access, type ReachFolder } from '../../reach.js'
import { refuse } from '../../refusal.js'
import type { Caller } from '../../types.js'
import { refuseReading, type AccessView } from './access-view.js'
import type { WorkspacePaths } from '../files/workspace-paths.js'

/**
 * Where a conversation works: the folder its turns start in, and the folders they are limited to; default: the whole
 * workspace.
 */
export interface ConversationPlace {
  readonly startIn?: string
  readonly folders?: readonly ReachFolder[]
}

const WHOLE: readonly ReachFolder[] = [{ path: '.', access: 'work' }]

/** Whether a caller reaches every folder that a conversation is limited to; default: the whole workspace. */
export const reachesAll = ({ reach }: Pick<AccessView, 'reach'>, folders = WHOLE): boolean =>
  folders.every(({ path }) => accessTo(reach, path) !== undefined)

/** Whether a caller has at least the access to every folder that a conversation has; default: the whole workspace. */
export const worksEverywhere = ({ reach }: Pick<AccessView, 'reach'>, folders = WHOLE): boolean =>
  folders.every(({ path, access }) => allows(reach, path, access))

/**
 * A caller's access to a conversation, which is that to its start folder; undefined: it does not exist for the caller.
 *
 * A transcript may contain anything that its turns could see, so the caller must reach every folder they are limited
 * to.
 */
export const accessToConversation = async (
  seen: AccessView,
  conversation: ConversationPlace,
): Promise<Access | undefined> =>
  reachesAll(seen, conversation.folders) ? seen.access(conversation.startIn) : undefined

/** Refuses a conversation that a caller may not see, with the message for an unknown one. */
export const refuseUnknown = (id: string): never =>
  refuse('not-found', `there is no conversation ${JSON.stringify(id.slice(0, 64))}`)

/**
 * The conversation that a caller means: a turn that calls with its own credential means its own; every other is refused
 * like one that does not exist.
 */
export const ofCaller = <T extends string | undefined>(
  { conversationId: own }: Pick<Caller, 'conversationId'>,
  id: T,
): T | string => {
  if (own !== undefined && id !== undefined && id !== own) refuseUnknown(id)
  return own ?? id
}

/** Refuses a conversation that a caller may not see; with `works` also one in an area held for reading only. */
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

/** The real paths that a caller must all reach to see a conversation; undefined: its start folder does not exist. */
export const placesOfConversation = async (
  places: Pick<WorkspacePaths, 'of'>,
  { startIn, folders = WHOLE }: ConversationPlace,
): Promise<string[] | undefined> => {
  const start = await places.of(startIn)
  return start === undefined ? undefined : [...new Set([start, ...folders.map(({ path }) => path)])]
}
