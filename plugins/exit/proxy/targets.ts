import { refuse } from '../../../sdk/index.js'
import { addressKind, isHere, plainAddress } from '../../../sdk/node/network/addresses.js'
import { isMetadataName } from '../../../sdk/node/network/allow.js'

/** Refuses a name or an address that is this machine or link-local: it is not outside, whatever the exit. */
export const assertOutside = (host: string): void => {
  const plain = plainAddress(host)
  if (plain === undefined) {
    if (/(?:^|\.)localhost$/.test(host) || isMetadataName(host))
      refuse('forbidden', `${host} is not reached through an exit: it is this machine`)
    return
  }
  const kind = addressKind(plain)
  if (kind === 'public' || kind === 'private' ? isHere(plain) : true)
    refuse('forbidden', `${host} is not reached through an exit: it is this machine, or no address outside`)
}

/** What a connection through an exit that has no tunnel fails with: it never goes out directly. */
export const noTunnel = (): Error => Object.assign(new Error('the exit is down'), { code: 'ENETUNREACH' })
