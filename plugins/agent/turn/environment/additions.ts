import type { WallGrants } from '../../../../sdk/host.js'
import type { Host } from '../../../../sdk/index.js'
import type { TurnVariables } from '../../../capabilities/contract.js'
import type { DiskFolders } from '../../../disks/contract.js'
import type { TurnPersona } from '../../../personas/contract.js'

/** What the programs of a turn get of the connections and the extensions. */
export interface TurnAdditions extends TurnVariables {
  /** Folders for the end of PATH, as the programs see them. */
  readonly path: readonly string[]
  /** Folders with skills, commands, agents, hooks and tool servers for agent programs, as these see them. */
  readonly agentFolders: readonly string[]
  /** The folders of network disks. */
  readonly disks: DiskFolders
}

/** Reads what connections and extensions add to a turn, as far as its persona allows them. */
export const additionsOf =
  (host: Pick<Host, 'call' | 'serves'>) =>
  async (conversationId: string, persona: TurnPersona | undefined): Promise<TurnAdditions> => {
    const [connected, extended, disks] = await Promise.all([
      ofConnections(host, conversationId, persona),
      ofExtensions(host, persona),
      ofDisks(host, persona),
    ])
    return {
      ...connected,
      disks,
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
): Promise<TurnVariables> =>
  (await host.serves('env.variables'))
    ? host.call('env.variables', { conversationId, ...(persona && { capabilities: persona.capabilities }) })
    : { variables: {} }

const ofExtensions = async (host: Pick<Host, 'call' | 'serves'>, persona: TurnPersona | undefined) =>
  (await host.serves('extensions.forTurn'))
    ? host.call('extensions.forTurn', { ...(persona && { extensions: persona.powers.extensions }) })
    : { variables: {}, files: [], path: [], agents: [] }

const ofDisks = async (host: Pick<Host, 'call' | 'serves'>, persona: TurnPersona | undefined): Promise<DiskFolders> =>
  (await host.serves('disks.forTurn'))
    ? host.call('disks.forTurn', { ...(persona && { capabilities: persona.capabilities }) })
    : { read: [], write: [] }

/** The deployment's grants with the folders of network disks, which lie outside of the workspace. */
export const withDisks = (grants: WallGrants | undefined, { read, write }: DiskFolders): WallGrants => ({
  read: [...(grants?.read ?? []), ...read],
  write: [...(grants?.write ?? []), ...write],
})
