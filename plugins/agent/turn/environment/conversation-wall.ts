import type { ReachFolder } from '../../../../sdk/index.js'
import { homeOfConversation } from '../../../../sdk/node/wall/home.js'
import type { Trust } from '../../../../sdk/node/wall/spec.js'
import type { WallSpec } from '../../../../sdk/node/wall/wall.js'
import type { TurnPersona } from '../../../personas/contract.js'
import { walledFor } from '../../personas/worn.js'
import type { TurnEnvironmentDeps } from './environment-deps.js'
import type { TurnNetwork } from './networks.js'

type ConversationWall = Omit<WallSpec, 'cwd' | 'env'>

/** Whose programs are behind the wall. */
export interface WalledConversation {
  readonly id: string
  /** The network of a turn is chosen when it begins. */
  readonly network: Pick<TurnNetwork, 'wall'>
  readonly persona?: TurnPersona
  /** The folders that it reaches; undefined: all. */
  readonly folders: readonly ReachFolder[] | undefined
  readonly trust: Trust
}

/** The wall around the programs of a conversation, from the one around its tree. */
export const conversationWall = async (
  { copies, data, limiter }: Pick<TurnEnvironmentDeps, 'copies' | 'data' | 'limiter'>,
  { network: _network, ...tree }: ConversationWall,
  { id, network, persona, folders, trust }: WalledConversation,
): Promise<ConversationWall> => ({
  ...tree,
  home: await homeOfConversation(data, id, { alone: folders !== undefined, trust }),
  ...(folders && { only: folders }),
  limits: limiter.of(id),
  ...(network.wall && { network: network.wall }),
  ...walledFor(persona, tree, persona?.repos ? await copies.repositories() : []),
})
