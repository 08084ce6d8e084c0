import type { tags } from 'typia'
import type { Count, Millis } from '../../sdk/types.js'

/** How a model server is spoken to: chat completions, messages, or tags and chat. */
export type WireProtocol = 'openai' | 'anthropic' | 'ollama'

/** One model in a catalogue. */
export interface ModelRow {
  /** What a turn sends; never rewritten. */
  id: string & tags.MinLength<1> & tags.MaxLength<200>
  label: string
  /** Levels of effort it knows; none when it says nothing. */
  efforts: string[]
  description?: string
  badges: ('reasoning' | 'fast')[]
  /** Tokens. */
  contextWindow?: Count
  /** Why it cannot drive a turn with tools. */
  helperOnly?: 'no-tool-calls' | 'instant-tier'
  /** The server said it is used up until then. */
  availableAt?: Millis
}
/** A model server as a turn speaks to it, with secret values: never shown, never stored. */
export interface EndpointTarget {
  id: string
  label: string
  protocol: WireProtocol
  /** Without a version segment and without a slash at the end. */
  baseUrl: string
  /** Every header beside those of the protocol, with the key. */
  headers: { [name: string]: string }
  /** Whether this machine runs the model. */
  local: boolean
  models: ModelRow[]
  /** The model that is used when none is named; "" when there is none. */
  default: string
  /** Set when the server cannot be used now, as a sentence. */
  problem?: string
}
/** A model server as something to choose. */
export interface EndpointChoice {
  id: string
  label: string
  models: ModelRow[]
  default: string
  ready: boolean
  reason?: string
}

/** What model servers are for other groups. */
export interface EndpointServices {
  /** Gives a model server as a turn speaks to it. 404: no such server. */
  'endpoints.target'(input: { id: string }): EndpointTarget
  /** Lists what can be chosen, without asking any server. */
  'endpoints.choices'(): { endpoints: EndpointChoice[] }
}
