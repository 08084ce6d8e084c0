import type { WallGrants } from '../../../../sdk/host.js'
import type { Host } from '../../../../sdk/index.js'
import type { Trust } from '../../../../sdk/node/wall/spec.js'
import type { TurnVariables } from '../../../capabilities/contract.js'
import type { TurnPersona } from '../../../personas/contract.js'
import type { ProcessAccess } from '../../processes/conversation-processes.js'

/** What the programs of a turn get of the connections and the extensions. */
export interface TurnAdditions extends TurnVariables {
  /** Folders for the end of PATH, as the programs see them. */
  readonly path: readonly string[]
  /** Folders with skills, commands, agents, hooks and tool servers for agent programs, as these see them. */
  readonly agentFolders: readonly string[]
}

/** Reads what connections and extensions add to a turn, as far as its persona allows them. */
export const additionsOf =
  (host: Pick<Host, 'call' | 'serves'>) =>
  async (conversationId: string, persona: TurnPersona | undefined, access: ProcessAccess): Promise<TurnAdditions> => {
    const [connected, extended] = await Promise.all([
      ofConnections(host, conversationId, persona, access),
      ofExtensions(host, persona),
    ])
    return {
      ...connected,
      variables: { ...extended.variables, ...connected.variables },
      files: [...(connected.files ?? []), ...extended.files],
      path: extended.path,
      agentFolders: [...(connected.agents ?? []), ...extended.agents].map(({ seen }) => seen),
    }
  }

const ofConnections = async (
  host: Pick<Host, 'call' | 'serves'>,
  conversationId: string,
  persona: TurnPersona | undefined,
  access: ProcessAccess,
): Promise<TurnVariables> =>
  (await host.serves('env.variables'))
    ? host.call('env.variables', { conversationId, ...access, ...(persona && { capabilities: persona.capabilities }) })
    : { variables: {} }

const ofExtensions = async (host: Pick<Host, 'call' | 'serves'>, persona: TurnPersona | undefined) =>
  (await host.serves('extensions.forTurn'))
    ? host.call('extensions.forTurn', { ...(persona && { extensions: persona.powers.extensions }) })
    : { variables: {}, files: [], path: [], agents: [] }

/** Whose network disks they are. */
interface DisksOf {
  readonly persona: TurnPersona | undefined
  /** The turn is limited to folders, or an outside source woke it: it has those of its persona alone. */
  readonly limited: boolean
  readonly trust: () => Trust
}

/**
 * The network disks that a program of a turn sees when it starts. Work that does not land by itself only reads them: it
 * shares nothing that it writes with work that does.
 */
export const disksFor =
  (host: Pick<Host, 'call' | 'serves'>, { persona, limited, trust }: DisksOf) =>
  async (): Promise<WallGrants> => {
    if ((limited && !persona) || !(await host.serves('disks.forTurn'))) return { read: [], write: [] }
    const { read, write } = await host.call('disks.forTurn', { ...(persona && { capabilities: persona.capabilities }) })
    return trust() === 'lands' ? { read, write } : { read: [...read, ...write], write: [] }
  }
