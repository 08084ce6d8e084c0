import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests, Stream } from '../../sdk/contract.js'
import type { Count, Millis, Ok } from '../../sdk/types.js'
import type { CapabilityStatus, KindEntry, KindStep } from '../capabilities/contract.js'

/** The id of a tunnel: that of its connection of kind `vpn`. */
export type VpnId = string & tags.Pattern<'^[a-zA-Z0-9][a-zA-Z0-9_-]{0,59}$'>

/** How a tunnel is dialled. */
export type VpnProvider = 'wireguard' | 'openvpn' | 'fortinet' | 'ipsec'

/** `unavailable`: this machine lacks something to dial it; `failed`: the last dial, or asking its client, failed. */
export type VpnState = 'connected' | 'connecting' | 'disconnected' | 'unavailable' | 'failed'

/** A tunnel as the operating system has it now. */
export interface VpnLink {
  id: VpnId
  provider: VpnProvider
  state: VpnState
  /** The host, with its port where one is given, that it dials; never a credential. */
  gateway?: string
  /** Its network interface, once there is one. */
  interface?: string
  /** The address of this machine in it, with the length of its network. */
  address?: string
  /** The networks that go into it now; `0.0.0.0/0` or `::/0`: everything. */
  routes: string[]
  /** The name servers of the far end while it is connected. Of OpenVPN they are shown, and not used by this machine. */
  dns: string[]
  /** Since when it is connected. */
  since?: Millis
  /** It is dialled again when the daemon starts. */
  autoConnect: boolean
  /** Why it failed or is unavailable, or a note; never a credential. */
  detail?: string
}
/** Something that this machine lacks to dial a tunnel. */
export interface VpnMissing {
  what: 'program' | 'device' | 'privilege'
  name: string
  /** How to get it. */
  install: string
}
/** A tunnel with everything that is known of it. */
export interface VpnDetail extends VpnLink {
  /** Everything goes through it. */
  fullTunnel: boolean
  /** Bytes that its interface received, and sent. */
  rxBytes?: Count
  txBytes?: Count
  /** The last exchange of keys, of WireGuard and IPsec. */
  handshakeAt?: Millis
  /** What this machine lacks to dial it; empty: nothing. */
  missing: VpnMissing[]
  /** The last 200 lines of the last dial, with `***` in place of stored secrets. */
  log: string
  /** When that dial began. */
  logAt?: Millis
}
export interface VpnList {
  links: VpnLink[]
}

/** A step of a dial, as a sentence or as its client words it. */
export interface VpnLogLine {
  kind: 'log'
  message: string
}
/** The state of the tunnel from here on. */
export interface VpnStateLine {
  kind: 'state'
  state: VpnState
}
/** The tunnel is connected. */
export interface VpnResultLine {
  kind: 'result'
  ok: true
  link: VpnLink
}
export type VpnLine = VpnLogLine | VpnStateLine | VpnResultLine

/** A connection of an exported file, for the form that adds it. */
export interface VpnImported {
  /** Its name as an id that no connection has yet. */
  id: VpnId
  /** Its name as the file has it. */
  label: string
  provider: VpnProvider
  server: string
  port: number & tags.Type<'uint32'> & tags.Maximum<65535>
  /** Only where the file holds it readable. */
  username?: string
  description?: string
  localId?: string
  aggressive?: boolean
  pfs?: boolean
  dhGroup?: string
  /** The fields of the form that the file does not give. */
  needs: string[]
}

/** How group capabilities checks, dials, asks, drops and renames the connections of kind `vpn`. */
export interface VpnKindCalls {
  /** Checks what a tunnel is set up with. 422: it cannot be used; the message has the field, and the line. */
  'vpn.kindCheck'(input: KindEntry): Ok
  /** Dials a tunnel that is being set up, unless it is to be dialled by hand; one that is up is dialled anew. */
  'vpn.kindApply'(input: KindEntry): Stream<KindStep>
  /** Says how a tunnel is, for the list of connections. */
  'vpn.kindStatus'(input: { id: string }): CapabilityStatus
  /** Takes a tunnel down before its connection is removed. */
  'vpn.kindRelease'(input: { id: string }): Ok
  /** Removes everything that is kept of a tunnel. */
  'vpn.kindForget'(input: { id: string }): Ok
  /** Carries what is kept of a tunnel to another id. 409: it is up. */
  'vpn.kindRename'(input: { id: string; to: string }): Ok
}

/** Tunnels to private networks: which are set up, which are up, dialled and dropped. */
export interface VpnCalls extends VpnKindCalls {
  /**
   * List every tunnel that is set up, in the order in which they were added, with its state now.
   *
   * The state is that of interfaces, routes and clients on this machine, so a tunnel dropped in a shell shows so too.
   * One whose client does not answer within 3 s is `failed`, and the others are listed. A command of a turn with the
   * power `sandbox` lists, dials and drops them too, where maintainers alone spoke and the safety policy allows the
   * action `sandbox.vpn`.
   */
  'GET /vpn'(): VpnList

  /**
   * Get a tunnel with its counters, what this machine lacks to dial it, and the log of its last dial.
   *
   * - 404: no such tunnel
   */
  'GET /vpn/{id}'(input: { id: VpnId }): VpnDetail

  /**
   * Dial a tunnel, and watch each step until it is connected.
   *
   * A tunnel that is connected stays as it is. The dial goes on if the reader leaves. A dial that fails ends with
   * `error` after its client, interface and routes were removed; that a gateway asks for a code is said there.
   *
   * - 404: no such tunnel
   * - 409: it is being dialled or dropped, another connected tunnel has a route that overlaps, or another interface of
   *   this machine has its name
   * - 422: what is stored of it cannot be used; the message says why
   * - 424: the gateway refused, or did not answer within 60 s; this ends the stream
   * - 501: this machine lacks a program, a device or a privilege; the message says how to get it
   * - 503: the store of secrets is locked
   */
  'POST /vpn/{id}/connect'(input: {
    id: VpnId
    /** A one-time code of the gateway: for this dial alone, never stored. */
    otp?: string & tags.MinLength<1> & tags.MaxLength<64> & tags.Pattern<'^[\\x21-\\x7e]*$'>
  }): Stream<VpnLine, { link: VpnLink }>

  /**
   * Take a tunnel down, and answer once its interface, routes and client are gone.
   *
   * A tunnel that is down is fine, and a dial in progress ends. It stays down until it is dialled, or the daemon starts
   * while `autoConnect` is on.
   *
   * - 404: no such tunnel
   * - 500: it is still up after its client was killed
   */
  'POST /vpn/{id}/disconnect'(input: { id: VpnId }): Ok

  /**
   * Read the connections of a file that FortiClient exported, so that a person only types what is missing.
   *
   * Nothing is stored. Values that the exporting program encrypted are left out. A file without connections gives none.
   *
   * - 400: not well-formed, or with a document type
   * - 413: larger than 1 MiB
   * - 422: well-formed, and no such export
   */
  'POST /vpn/import-forticlient'(input: { xml: string }): { connections: VpnImported[] }

  /** Lists the tunnels for another group. */
  'vpn.links'(): VpnList
}

/** A tunnel is up. */
export interface VpnEvents {
  'vpn.connected': { id: string }
}

export const vpnContract: Contract<VpnCalls> = {
  schema: () => typia.json.application<VpnCalls>(),
  request: typia.misc.createValidatePrune<Requests<VpnCalls>>(),
  reply: () => typia.createValidate<Replies<VpnCalls>>(),
}
