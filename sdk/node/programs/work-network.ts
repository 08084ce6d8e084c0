import type { Host } from '../../host.js'
import type { WallNetwork } from '../wall/spec.js'

/**
 * The network of programs that run for no conversation, and whose text or start is not that of maintainers alone: that
 * of the machine as long as nobody below maintainer may start turns, else one of their own.
 */
export const workNetwork = (host: Pick<Host, 'call' | 'serves'>): WallNetwork => ({
  enter: async () => {
    if (!(await host.serves('networks.work'))) return undefined
    const { network } = await host.call('networks.work')
    if (!network) return undefined
    const { program, args, ...rest } = network
    return { command: [program, ...args], ...rest }
  },
})
