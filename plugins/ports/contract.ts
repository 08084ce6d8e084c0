import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Ok } from '../../sdk/types.js'
import type { ConversationId } from '../agent/contract.js'
import type { TcpPort } from '../system/contract.js'

/** Who started what listens; `sandbox`: a program of the sandbox itself, `unknown`: no evidence. */
export type PortOrigin = 'terminal' | 'agent' | 'panel' | 'extension' | 'container' | 'sandbox' | 'unknown'

/** A port on which something listens. */
export interface PortEntry {
  port: TcpPort
  /** Where it is reached on its machine; a server on all addresses counts as 127.0.0.1. */
  host: '127.0.0.1' | '::1'
  /** False: it listens only at another address, such as that of a bridge. */
  forwardable: boolean
  /** `system`: programs of the machine and of the sandbox itself. */
  kind: 'workspace' | 'system'
  /** What it is, such as `Vite dev server`. */
  title: string
  /** A sentence with its folder and who started it. */
  purpose: string
  origin: PortOrigin
  pid?: Count
  /** Its command line, with stored values as references; only for callers who reach the whole workspace. */
  command?: string
  /** The folder it runs in: a workspace path, or absolute outside of the workspace. */
  cwd?: string
  /** The terminal it runs in, or the extension and its program. */
  session?: string
  /** It listens in the network of this conversation; two conversations may hold one port. */
  conversationId?: ConversationId
  forwarded: boolean
  /** The address at which everybody who knows it reaches the port. */
  previewUrl?: string
}
/** The ports on which something listens. */
export interface PortList {
  ports: PortEntry[]
}

/** A name under which a program is shown: unique, such as `preview-<repo>--<app>`. */
export type PreviewLabel = string & tags.MinLength<1> & tags.MaxLength<200>

/** Which ports something listens on, and the switch that makes one reachable. */
export interface PortsCalls {
  /**
   * List every TCP port on which something listens, with who started it: those of the workspace first, then by number.
   *
   * Callers within one second share a scan. The sandbox's own ports are left out; people limited to areas see the ports
   * of programs whose folder lies in these areas, without command lines.
   *
   * - 501: this system has neither `/proc` nor `lsof`
   */
  'GET /ports'(): PortList

  /**
   * Make one port reachable at an address of its own, for everybody who knows the address.
   *
   * A repeated call answers the same address. It leads only to the program that listens now: after a restart of that
   * program it leads there again if the same terminal or conversation started it within 24 hours, and never to another
   * program that takes the port. Requests reach the program with its own `Host` and without the sandbox's credentials.
   *
   * - 404: nothing listens there, or nothing runs in the network of that conversation
   * - 409: all 16 addresses lead to running programs; the message names them
   * - 422: a port of the sandbox itself, or one that is not reached over loopback
   * - 424: the preview listener could not start
   * - 501: this system has neither `/proc` nor `lsof`
   */
  'POST /ports/forward'(input: {
    port: TcpPort
    /** The port in the network of this conversation. */
    conversationId?: ConversationId
  }): { previewUrl: string }

  /**
   * End a forward and cut its open connections. Its address answers 502 from then on.
   *
   * Ending one that is not forwarded succeeds.
   */
  'POST /ports/unforward'(input: { port: TcpPort; conversationId?: ConversationId }): Ok

  /** The ports as `GET /ports` lists them to callers who reach the whole workspace. */
  'ports.scan'(): PortList

  /**
   * Gives a program an address, which leads to the port on which it or a process below it listens, and to no other
   * program. The address of a label stays the same.
   */
  'preview.register'(input: {
    label: PreviewLabel
    target: {
      /** The first process of the program. */
      pid: Count
      /** The port that it was asked to listen on: taken first. */
      port?: Count
    }
  }): { url?: string }

  /** Ends the preview of a label: its address answers 502. */
  'preview.unregister'(input: { label: PreviewLabel }): Ok

  /** The address of a label; absent: it is not registered, or the preview listener could not start. */
  'preview.urlOf'(input: { label: PreviewLabel }): { url?: string }
}

export const portsContract: Contract<PortsCalls> = {
  schema: () => typia.json.application<PortsCalls>(),
  request: typia.misc.createValidatePrune<Requests<PortsCalls>>(),
  reply: () => typia.createValidate<Replies<PortsCalls>>(),
}
