import type { tags } from 'typia'
import type { Ok } from '../../../sdk/types.js'
import type { ConversationId } from '../turn/frames/frames.js'

/** A socket on which a program of a conversation listens, in the network of the conversation. */
export interface NetworkSocket {
  port: number & tags.Type<'uint32'>
  address: string
  /** Names it on this machine. */
  inode: string
}
/** The sockets of one conversation. */
export interface NetworkSockets {
  conversationId: ConversationId
  sockets: NetworkSocket[]
}

/** How a program is started in a network. */
export interface WorkNetwork {
  /** The program that starts a command in it; the command follows its arguments. */
  program: string
  args: string[]
  env: { [name: string]: string }
  inUserNamespace: boolean
  resolver?: string
  authorities?: string
}

/** What a turn asks of the machine's network with its own credential. */
export interface NetworkAction {
  conversationId: ConversationId
  type: 'vpn' | 'disks' | 'exit'
  /** What it asks for, for the safety policy and its log. */
  text: string
}

/** The networks of conversations. */
export interface NetworkCalls {
  /** The sockets on which programs listen in networks of conversations, without those that the daemon placed there. */
  'networks.listening'(): { networks: NetworkSockets[] }

  /**
   * Opens a way for the daemon to a server in the network of a conversation: each connection to the local socket at
   * `path` reaches one of these sockets and no other, or is closed.
   */
  'networks.relay'(input: {
    conversationId: ConversationId
    host: '127.0.0.1' | '::1'
    port: number & tags.Type<'uint32'>
    inodes: string[]
  }): { path: string }

  /**
   * The network of programs that run for no conversation: absent as long as nobody below maintainer may start turns,
   * and where the settings share the machine's. It follows the settings of conversations.
   */
  'networks.work'(): { network?: WorkNetwork }

  /**
   * Refuses what a turn asks for with its own credential, unless maintainers alone spoke in its conversation and the
   * safety policy allows the action `sandbox.<type>`.
   */
  'networks.admit'(input: NetworkAction): Ok
}
