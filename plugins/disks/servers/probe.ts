import { Refusal, type Host } from '../../../sdk/index.js'
import type { DiskProbe, DiskTarget } from '../contract.js'
import { checkTarget, type DiskEntry, type DiskSecrets } from '../entry.js'
import { maskedSecrets } from '../masking.js'
import { shareAddress } from './address.js'
import { askNfs } from './nfs.js'
import { askSmb } from './smb.js'
import { askSsh, plainHostKey } from './ssh.js'
import { askWebdav } from './webdav.js'

const PROBE_MS = 10_000

/** Asks the server of a target what it offers; what it refuses is an answer too. */
export const probeServer = async (
  host: Pick<Host, 'call' | 'signal'>,
  target: DiskTarget,
  secrets: DiskSecrets,
  within: AbortSignal = AbortSignal.timeout(PROBE_MS),
): Promise<DiskProbe> => {
  checkTarget(target, secrets)
  const signal = AbortSignal.any([host.signal, within])
  try {
    const address = await shareAddress(host, target, signal)
    const probe = await askProvider({ id: 'probe', config: target, secrets: [] }, secrets, address, signal)
    return probe.detail === undefined ? probe : { ...probe, detail: maskedSecrets(probe.detail, secrets) }
  } catch (error) {
    if (error instanceof Refusal && error.reason === 'dependency') return unreachable(error.message)
    if (within.aborted) return unreachable('it does not answer')
    throw error
  }
}

const unreachable = (detail: string): DiskProbe => ({ reachable: false, auth: 'untested', shares: [], detail })

const askProvider = async (
  entry: DiskEntry,
  secrets: DiskSecrets,
  address: string,
  signal: AbortSignal,
): Promise<DiskProbe> => {
  const { config: target } = entry
  switch (target.provider) {
    case 'smb':
      return askSmb({ entry, secrets, address, signal })
    case 'nfs':
      return { auth: 'untested', ...(await askNfs(target.server, address, signal)) }
    case 'sshfs': {
      const pinned = target.hostKey === undefined ? undefined : plainHostKey(target.hostKey)
      return askSsh({ target, secrets, address, list: true, signal, ...(pinned !== undefined && { pinned }) })
    }
    case 'webdav': {
      const { pem: _, ...shown } = await askWebdav({ target, secrets, address, signal })
      return shown
    }
  }
}
