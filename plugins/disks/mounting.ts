import { setTimeout as delay } from 'node:timers/promises'
import { Refusal, refuse, type Host } from '../../sdk/index.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import type { DiskMounter, MountPlan, StartedCarrier } from './carriers/carrier.js'
import { diskServer, sourceOf, type DiskEntry, type DiskSecrets } from './entry.js'
import { makeLink, removeLink } from './link.js'
import { detach, isMounted } from './machine/detaching.js'
import type { ShareHealths } from './machine/health.js'
import { maskedSecrets } from './masking.js'
import type { DiskPlaces } from './places.js'
import { shareAddress } from './servers/address.js'
import { askSsh, hostKeyHash, plainHostKey } from './servers/ssh.js'
import { askWebdav, isTrustedCertificate } from './servers/webdav.js'
import type { DiskStore, StoredDisk, StoredPin } from './stored.js'

/** The dependencies of mounting. */
export interface MountingDeps {
  readonly host: Pick<Host, 'call' | 'place' | 'signal' | 'log'>
  readonly places: DiskPlaces
  readonly store: DiskStore
  readonly healths: ShareHealths
}

/** A share that is to be mounted. */
export interface MountOrder {
  readonly entry: DiskEntry
  readonly secrets: DiskSecrets
  readonly carrier: DiskMounter
  /** Called with each step. */
  readonly report: (message: string) => void
  /** Aborted when somebody unmounts it meanwhile. */
  readonly stop: AbortSignal
}

const MOUNT_MS = 60_000
const LIST_MS = 10_000
const LOOK_MS = 50
const DETACH_MS = 5_000

/** Mounts a share, and keeps when; after a failure everything is as it was before. */
export const mountShare = async (deps: MountingDeps, order: MountOrder): Promise<void> => {
  const { host, places, store } = deps
  const { entry, secrets, stop } = order
  const { id } = entry
  const lines: string[] = []
  const report = (message: string) => {
    const line = maskedSecrets(message, secrets)
    lines.push(line)
    order.report(line)
  }
  const { failed: _, notice: __, ...before } = await store.get(id)
  await store.set(id, { ...before, mounting: true })
  const late = AbortSignal.timeout(MOUNT_MS)
  const signal = AbortSignal.any([host.signal, stop, late])
  let carrier: StartedCarrier | undefined
  const carriersWords = async () => (await carrier?.output().catch(() => ''))?.trim() ?? ''
  try {
    const mountPoint = await places.make(id)
    report(`mounting ${sourceOf(entry.config)} with ${order.carrier.via} at ${mountPoint}`)
    const { pin, ...reached } = await reach(deps, order, before.pin, report, signal)
    const paths = { mountPoint, folder: places.credentials(id), cache: places.cache(id) }
    const readOnly = entry.config.readOnly === 'on'
    carrier = await order.carrier.start({ entry, secrets, signal, readOnly, ...paths, ...reached })
    failpoint('disks.started')
    await appears(mountPoint, carrier, signal)
    const { answers, detail } = await deps.healths.of(mountPoint, LIST_MS)
    if (!answers) refuse('dependency', `it was mounted and cannot be listed: ${detail ?? 'it does not answer'}`)
    signal.throwIfAborted()
    const { link } = entry.config
    if (link !== undefined) await makeLink(host.place.workspace, link, mountPoint)
    report('it is mounted')
    const logAt = Date.now()
    await store.setLog(id, lines)
    await store.set(id, {
      since: Date.now(),
      via: order.carrier.via,
      logAt,
      ...(link !== undefined && { link }),
      ...(pin && { pin }),
    })
  } catch (error) {
    const said = maskedSecrets(await carriersWords(), secrets)
    if (said !== '') lines.push(...said.split('\n'))
    const failure = failureOf(error, { stop, late, said, secrets })
    lines.push(failure.message)
    await undo(deps, entry, carrier)
    await store.setLog(id, lines)
    const { mounting: ___, ...rest } = before as StoredDisk
    await store.set(id, {
      ...rest,
      logAt: Date.now(),
      ...(!stop.aborted && !host.signal.aborted && { failed: failure.message }),
    })
    throw failure
  }
}

/** The failure as its caller gets it, with what the carrier said. */
const failureOf = (
  error: unknown,
  given: { stop: AbortSignal; late: AbortSignal; said: string; secrets: DiskSecrets },
): Error => {
  const { stop, late, said, secrets } = given
  if (stop.aborted) return new Refusal('conflict', 'it was unmounted before it was mounted')
  if (late.aborted) return new Refusal('dependency', `the server did not answer within ${MOUNT_MS / 1000} s`)
  if (!(error instanceof Refusal)) return error as Error
  const words = said.split('\n').filter(Boolean).at(-1)
  const message = maskedSecrets(error.message, secrets)
  const more = words !== undefined && !message.includes(words) ? ` (${words.slice(0, 300)})` : ''
  return new Refusal(error.reason, message + more, error.detail)
}

/** Takes off what a mount that failed left. */
const undo = async (
  { host, places }: MountingDeps,
  { id, config: { link } }: DiskEntry,
  carrier: StartedCarrier | undefined,
): Promise<void> => {
  const mountPoint = await places.mountPoint(id)
  if (await isMounted(mountPoint)) {
    const said = await detach(mountPoint, DETACH_MS, 'once')
    if (said !== undefined) host.log.error('taking a failed mount off failed', { id, said })
  }
  await carrier?.end()
  if (link !== undefined) await removeLink(host.place.workspace, link, mountPoint)
  await places.removeCredentials(id)
  await places.removeFolder(id)
}

const appears = async (mountPoint: string, carrier: StartedCarrier, signal: AbortSignal): Promise<void> => {
  let ended = false
  void carrier.ended?.then(() => (ended = true))
  while (!(await isMounted(mountPoint))) {
    signal.throwIfAborted()
    if (ended) refuse('dependency', 'the server refused')
    await delay(LOOK_MS)
  }
}

type Reached = Pick<MountPlan, 'address' | 'hostKey' | 'certificate'> & { readonly pin?: StoredPin }

/** Asks the server before anything is mounted: with a key or certificate that is not the pinned one it is refused. */
const reach = async (
  { host }: MountingDeps,
  { entry: { config }, secrets }: MountOrder,
  stored: StoredPin | undefined,
  report: (message: string) => void,
  signal: AbortSignal,
): Promise<Reached> => {
  const address = await shareAddress(host, config, signal)
  const server = diskServer(config).host
  const before = stored?.server === server ? stored : undefined
  if (config.provider === 'sshfs') {
    const given = config.hostKey === undefined ? before?.value : plainHostKey(config.hostKey)
    const asked = { target: config, secrets, address, list: false, signal, ...(given && { pinned: given }) }
    const { hostKey, detail } = await askSsh(asked)
    if (hostKey === undefined) return refuse('dependency', `${server}: ${detail ?? 'it shows no host key'}`)
    const sha256 = hostKeyHash(hostKey)
    if (given !== undefined && given !== hostKey)
      refuse(
        'dependency',
        `expected the pinned host key with SHA-256 ${hostKeyHash(given)}, found one with ${sha256}: if the server got `
          + 'a new key, give it as hostKey',
      )
    if (given === undefined) report(`pinned the host key ${hostKey.split(' ')[0]} with SHA-256 ${sha256}`)
    const pinnedAt = before?.value === hostKey ? before.pinnedAt : Date.now()
    return { address, hostKey, pin: { kind: 'host-key', sha256, pinnedAt, value: hostKey, server } }
  }
  if (config.provider !== 'webdav') return { address }
  const answer = await askWebdav({ target: config, secrets, address, signal })
  const { certificate, pem } = answer
  if (certificate && !isTrustedCertificate(config, certificate)) {
    const expected = config.trustedCert ?? 'one that an authority of this machine vouches for'
    refuse('dependency', `expected the certificate ${expected}, found sha256:${certificate.sha256}`)
  }
  if (!answer.reachable) refuse('dependency', `${server}: ${answer.detail ?? 'it does not answer'}`)
  if (answer.auth === 'refused') refuse('dependency', `the server refused the sign-in: ${answer.detail ?? ''}`)
  if (config.trustedCert === undefined || !certificate) return { address }
  const { sha256 } = certificate
  const pinnedAt = before?.value === sha256 ? before.pinnedAt : Date.now()
  const pin = { kind: 'certificate', sha256, pinnedAt, value: sha256, server } as const
  return { address, ...(pem !== undefined && { certificate: pem }), pin }
}
