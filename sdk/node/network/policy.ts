import { connect, isIP, type Socket } from 'node:net'
import { refuse } from '../../refusal.js'
import { addressKind, isHere, plainAddress, type Listener, type MachineReach } from './addresses.js'
import { isMetadataName, type Allowed } from './allow.js'
import type { BoundTraffic } from './bound-traffic.js'
import { normalHost, written, type Target } from './host-form.js'
import { lookupOf, Names, soonFound } from './names.js'
import { connectUpstream, tunnel, deploymentProxy } from './upstream.js'
import { ignored } from '../../ignored.js'

/** What conversations may reach beyond their own loopback. */
export interface NetworkPolicy {
  readonly allow: readonly Allowed[]
  /** Nothing but what is allowed; false: public addresses too. */
  readonly only: boolean
}

/** What holds for one connection. */
export interface NetworkRules extends NetworkPolicy {
  /** The daemon's own listeners: never reached. */
  readonly listeners: readonly Listener[]
}

/** What a request of the daemon for a conversation goes by, when that has a network of its own. */
export interface OwnReach {
  readonly rules: NetworkRules
  /** A connection to a port of the conversation's own loopback. */
  dial(port: number): Promise<Socket>
  /** Told of a target that was not reached. */
  refused(target: Target, sentence: string): void
  /** The values that are put into requests on their way; left out: none are. */
  readonly bound?: BoundTraffic
}

/** Which addresses a request made for somebody else may go to. */
export interface NetworkReach extends MachineReach {
  /** It is made for a conversation with a network of its own; left out: from the machine's. */
  readonly own?: OwnReach
}

/** The same reach without ports of its own loopback and private addresses; `why` says what would allow them. */
export const withoutNear = ({ own, ...found }: NetworkReach, why: string): NetworkReach => {
  if (!own) return { ...found, near: false }
  const dial = async (port: number) => refuse('forbidden', `port ${port} of the conversation is not reached: ${why}`)
  return { ...found, near: false, own: { ...own, rules: { ...own.rules, allow: [] }, dial } }
}

/** Connects to where a program asks; what the rules do not let it is a refusal. */
export type Dial = (target: Target, how?: DialHow) => Promise<Socket>

/** `plain`: for a plain HTTP request, which a proxy of the deployment takes itself instead of a tunnel. */
export type DialHow = 'plain' | 'whatever'

/** Why an address is not reached. */
export interface Barred {
  readonly why: string
  /** The entry of `networkAllow` that would change it; left out: nothing does. */
  readonly entry?: string
}

const CONNECT_MS = 30_000
const PLAIN_PORT = 80

/** What is expected of a host, as the end of a sentence. */
export const HOST_FORM = 'a name of letters, digits, -, _ and ., or an address'

/** Whether an entry allows an address that a target stands for. */
const holds = (entry: Allowed, { host, port }: Target, plain: string, here: boolean): boolean => {
  if (entry.port !== undefined && entry.port !== port) return false
  switch (entry.kind) {
    case 'local':
      return addressKind(plain) === 'loopback'
    case 'addresses':
      return entry.holds(plain)
    case 'name': {
      // The owner of a name chooses its addresses, so a name opens no port of this machine.
      if (here) return false
      const name = normalHost(host) ?? ''
      return entry.below ? name.endsWith(`.${entry.name}`) : name === entry.name
    }
  }
}

/** Whether an entry names a target as it is written, whatever it stands for. */
export const isNamed = (allow: readonly Allowed[], target: Target): boolean => {
  const plain = plainAddress(target.host) ?? ''
  return allow.some(entry => (entry.kind !== 'addresses' || plain !== '') && holds(entry, target, plain, false))
}

/** Why a conversation does not reach an address that a target stands for; undefined: it does. */
export const judge = (
  target: Target,
  address: string,
  { allow, only, listeners }: NetworkRules,
): Barred | undefined => {
  const plain = plainAddress(address)
  const kind = plain === undefined ? 'unusable' : addressKind(plain)
  if (plain === undefined || kind === 'unusable') return { why: 'nothing can be connected to such an address' }
  if (kind === 'metadata') return { why: 'it is where a machine is told its own secrets' }
  const here = isHere(plain)
  if (here && listeners.some(({ port }) => port === target.port)) return { why: 'it is this sandbox itself' }
  if (allow.some(entry => holds(entry, target, plain, here))) return undefined
  const entry = written({ host: here ? (kind === 'loopback' ? 'localhost' : plain) : target.host, port: target.port })
  if (here) return { why: 'it is this machine, of which only allowed ports are reached', entry }
  if (kind !== 'public') return { why: `it is a ${kind} address`, entry }
  return only ? { why: 'only what networkAllow names is reached', entry } : undefined
}

/** Names of private networks: without a dot, or below a name that nobody can own in public. */
const NEAR_NAME = /^[^.]+$|\.(?:local|localdomain|internal|intranet|private|corp|home|lan|home\.arpa)$/

/** Whether a name looks like one of a private network. */
export const isNearName = (host: string): boolean => NEAR_NAME.test(host)

/** Whether what is sent to an address can be read and changed in networks of others on its way. */
export const isOpenOnTheWay = ({ protocol, hostname }: URL): boolean => {
  const host = normalHost(hostname) ?? ''
  const near = isIP(host) ? addressKind(host) !== 'public' : isNearName(host)
  return protocol !== 'https:' && !near
}

/** Why a name that only the proxy of the deployment knows is not asked there for a conversation; undefined: it is. */
export const judgeName = (target: Target, { allow, only }: NetworkPolicy): Barred | undefined => {
  if (isMetadataName(target.host)) return { why: 'it is where a machine is told its own secrets' }
  if (isNamed(allow, target)) return undefined
  const entry = written(target)
  if (isNearName(target.host)) return { why: 'it is a name of a private network', entry }
  return only ? { why: 'only what networkAllow names is reached', entry } : undefined
}

/** The sentence of a target that is not reached. */
export const sentenceOf = (target: Target, { why, entry }: Barred): string =>
  `${written(target)} is not reached from this `
  + `conversation: ${why}${entry === undefined ? '' : `; a maintainer allows it with: sandbox network allow ${entry}`}`

/**
 * Connects to a target, to an address that was checked.
 *
 * @throws A refusal `forbidden` where the rules do not let it, and the system's error where nobody answers.
 */
export const connectChecked = async (
  asked: Target,
  rules: NetworkRules,
  signal: AbortSignal,
  names = new Names(),
  how: DialHow = 'whatever',
): Promise<Socket> => {
  const host =
    normalHost(asked.host)
    ?? refuse('forbidden', `${JSON.stringify(asked.host.slice(0, 300))} is not reached: expected ${HOST_FORM}`)
  // What is judged is what is looked up and dialled.
  const target = { host, port: asked.port }
  const proxy = deploymentProxy(target, how === 'plain' || target.port === PLAIN_PORT ? 'http:' : 'https:')
  const all = await (proxy ? soonFound(names.find(host, signal)) : names.find(host, signal))
  signal.throwIfAborted()
  if (proxy && !all.some(({ address }) => isHere(plainAddress(address) ?? ''))) {
    // The proxy looks the name up itself, so all that it is known to stand for must be open.
    const barred = all.length
      ? all.map(({ address }) => judge(target, address, rules)).find(Boolean)
      : judgeName(target, rules)
    if (barred) return refuse('forbidden', sentenceOf(target, barred))
    return how === 'plain' ? connectUpstream(proxy, signal) : tunnel(proxy, target, signal)
  }
  const open = all.filter(({ address }) => judge(target, address, rules) === undefined)
  if (!open.length) {
    const [first] = all
    const barred = (first && judge(target, first.address, rules)) ?? { why: 'it stands for no address' }
    return refuse('forbidden', sentenceOf(target, barred))
  }
  return connected(
    connect({
      host: 'checked',
      port: target.port,
      lookup: lookupOf(open),
      allowHalfOpen: true,
      noDelay: true,
      keepAlive: true,
      autoSelectFamily: true,
    }),
    signal,
  )
}

/** The socket once it is connected, paused; it is destroyed when that fails or takes too long. */
const connected = (socket: Socket, signal: AbortSignal): Promise<Socket> =>
  new Promise((done, failed) => {
    const stop = () => socket.destroy(Object.assign(new Error('it does not answer'), { code: 'ETIMEDOUT' }))
    const late = setTimeout(stop, CONNECT_MS)
    signal.addEventListener('abort', stop, { once: true })
    const over = () => {
      clearTimeout(late)
      signal.removeEventListener('abort', stop)
    }
    socket.once('error', error => {
      over()
      failed(error)
    })
    socket.once('connect', () => {
      over()
      socket.removeAllListeners('error')
      socket.on('error', ignored('its close follows'))
      done(socket.pause())
    })
  })
