import type { DiskCarrier, DiskMissing, DiskProvider } from '../contract.js'
import type { DiskEntry } from '../entry.js'
import { lackingWords } from '../machine/lacking.js'
import type { DiskMounter } from './carrier.js'
import { cifsCarrier, davfsCarrier, nfsCarrier } from './mount-programs.js'
import { rcloneCarrier } from './rclone.js'
import { sshfsCarrier } from './sshfs.js'

const CARRIERS: { readonly [provider in DiskProvider]: readonly DiskMounter[] } = {
  smb: [cifsCarrier, rcloneCarrier],
  nfs: [nfsCarrier],
  sshfs: [sshfsCarrier, rcloneCarrier],
  webdav: [davfsCarrier, rcloneCarrier],
}

/** What could carry a share on this machine. */
export interface CarrierChoice {
  /** The first usable one. */
  readonly chosen?: DiskMounter
  readonly carriers: readonly DiskCarrier[]
  /** What the machine lacks; empty where one is usable. */
  readonly missing: readonly DiskMissing[]
  /** Why none is usable. */
  readonly reason?: string
}

/** Looks for the carriers of a share in the order in which they are tried. */
export const chooseCarrier = async (entry: DiskEntry): Promise<CarrierChoice> => {
  const looked = await Promise.all(
    CARRIERS[entry.config.provider].map(async carrier => {
      const unsuited = carrier.unsuited?.(entry)
      const missing = unsuited === undefined ? await carrier.missing() : []
      return { carrier, missing, reason: unsuited ?? (missing.length > 0 ? lackingWords(missing) : undefined) }
    }),
  )
  const chosen = looked.find(({ reason }) => reason === undefined)?.carrier
  const carriers = looked.map(({ carrier: { via }, reason }) =>
    reason === undefined ? { via, usable: true } : { via, usable: false, reason },
  )
  if (chosen) return { chosen, carriers, missing: [] }
  const missing = new Map(looked.flatMap(one => one.missing).map(one => [`${one.what} ${one.name}`, one]))
  const reason = carriers.map(({ via, reason: why }) => `${via}: ${why}`).join('. ')
  return { carriers, missing: [...missing.values()], reason }
}

/** The carrier of a mount that is there. */
export const carrierNamed = (via: string | undefined): DiskMounter | undefined =>
  Object.values(CARRIERS)
    .flat()
    .find(carrier => carrier.via === via)
