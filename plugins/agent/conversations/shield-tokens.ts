import type { Host } from '../../../sdk/index.js'

type Link = Pick<Host, 'call' | 'serves'>

/** What happens to the tokens of the privacy shield with their conversations. */
export interface ShieldTokens {
  /** A fork knows the tokens of its source. */
  readonly copy: (from: string, fork: string) => Promise<void>
  /** They are destroyed with the record; may be called again. */
  readonly purge: (conversationId: string) => Promise<void>
  /** Whether this machine runs the models of a provider. */
  readonly isLocal: (provider: string) => Promise<boolean>
}

/** The tokens of conversations, where the privacy shield is there. */
export const shieldTokens = (host: Link): ShieldTokens => ({
  copy: async (from, to) => {
    if (await host.serves('shield.copy')) await host.call('shield.copy', { from, to })
  },
  purge: async conversationId => {
    if (await host.serves('shield.purge')) await host.call('shield.purge', { conversationId })
  },
  isLocal: provider => isLocalProvider(host, provider),
})

const isLocalProvider = async (host: Link, provider: string): Promise<boolean> => {
  if (!provider.startsWith('endpoint/') || !(await host.serves('capabilities.records'))) return false
  const { capabilities } = await host.call('capabilities.records', { kind: 'localmodel' })
  return capabilities.some(({ id }) => `endpoint/${id}` === provider)
}
