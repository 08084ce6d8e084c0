import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { CapabilityStatus } from '../capabilities/contract.js'
import type { Count, Millis, Ok, Size } from '../../sdk/types.js'
import type { LocalModelCalls } from './local/contract.js'

export type { LocalModelFit } from './local/contract.js'

/** How a model server is spoken to: chat completions, messages, or tags and chat. */
export type WireProtocol = 'openai' | 'anthropic' | 'ollama'

/** The id of a model server: a turn's provider is `endpoint/<id>`. Not `trial`, `local-model` or `free-trial`. */
export type EndpointId = string & tags.Pattern<'^[a-zA-Z0-9][a-zA-Z0-9_-]{0,59}$'>

/**
 * How a model thinks: not at all, always, as much as it wants when it is asked to (`adaptive`), within a number of
 * tokens (`budget`), or by its level of effort alone.
 */
export type ThinkingForm = 'none' | 'budget' | 'adaptive' | 'always' | 'effort'

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
  /** The most tokens of one answer. */
  maxOutput?: Count
  thinking?: ThinkingForm
  /** Whether it sees pictures; left out: nobody knows. */
  pictures?: boolean
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
  /**
   * Where its calls are, such as `…/v1` of `…/v1/chat/completions` and `…/v1/messages`, or `…/api` of `…/api/chat`,
   * without a slash at the end. Left out: at the usual place below `baseUrl`.
   */
  apiBase?: string
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
  prices?: ModelPrices
  /** Its protocol can ask for faster answers. */
  fast?: boolean
}

type Dollars = number & tags.Minimum<0>
/** What tokens cost, in US dollars per million. */
export interface TokenPrice {
  input: Dollars
  output: Dollars
  cacheRead?: Dollars
  cacheWrite?: Dollars
}

/** What models cost by their ids; `*` stands for every other one. */
export interface ModelPrices {
  [model: string]: TokenPrice
}

/** A model server to save. */
export interface ServerInput {
  id: EndpointId
  /** What people see; the id when left out. */
  label?: string & tags.MaxLength<80>
  kind: 'server'
  protocol: WireProtocol
  /** Where it is: `http://` or `https://`, with or without a version segment and a slash at the end. */
  baseUrl: string & tags.MinLength<1> & tags.MaxLength<2048>
  /** Left out or `__vaulted__`: the stored one stays; "": none. */
  apiKey?: string & tags.MaxLength<4096>
  /** `Name: value` a line, sent with every request; empty lines and those that begin with # do not count. */
  headers?: string & tags.MaxLength<8192>
  /** What its models cost, for the usage and its budgets. Left out: the stored ones stay; empty: nobody knows. */
  prices?: ModelPrices
}

/** A window of context, in tokens. */
export type ContextWindow = number & tags.Type<'uint32'> & tags.Minimum<512> & tags.Maximum<1048576>

/** A model that this machine runs, to save. */
export interface LocalInput {
  id: EndpointId
  /** What people see; the id when left out. */
  label?: string & tags.MaxLength<80>
  kind: 'local'
  /** A model of the list of `GET /endpoints/local-model/fit`, or `custom`. */
  model: string & tags.MinLength<1> & tags.MaxLength<300>
  /** For `custom`: the address of its file in the format GGUF. Left out: the stored one stays, with its checksum. */
  url?: string & tags.Pattern<'^https?://[^\\s]+$'> & tags.MaxLength<2048>
  /** For `custom`: the checksum of its file; not checked when left out. */
  sha256?: string & tags.Pattern<'^[0-9a-f]{64}$'>
  /** Tokens; when left out, the largest window up to 32768 that runs at full speed. */
  context?: ContextWindow
  /** Run it on a card; off when left out. */
  gpu?: 'on' | 'off'
  /** Serve it now and after each start of the sandbox; true when left out. */
  enabled?: boolean
}
/** What to save: a server that runs somewhere, or a model that this machine is to run. */
export type EndpointInput = ServerInput | LocalInput

/** How a model server stands. */
export type EndpointStatus =
  | 'ready'
  | 'empty'
  | 'unreachable'
  | 'refused'
  | 'downloading'
  | 'loading'
  | 'stopped'
  | 'unavailable'
  | 'error'

/** A model that this machine runs: its file, its memory, and its process. */
export interface LocalDetails {
  model: string
  /** Where a model of a person's own comes from, without a query. */
  url?: string
  /** Tokens; 0 while the numbers of the model are not known. */
  context: Count
  /** The window that the entry names; left out, it is chosen by what fits. */
  wantedContext?: ContextWindow
  device: 'gpu' | 'host'
  /** Whether it is served now and after each start. */
  enabled: boolean
  weightsBytes: Size
  /** While it is being downloaded. */
  receivedBytes?: Size
  totalBytes?: Size
  /** What it needs in all, as far as that is known. */
  estimatedBytes: Size
  /** The memory of its process when it had loaded. */
  measuredBytes?: Size
  port?: Count
  pid?: Count
  /** The name of the log with what its server printed, for `GET /logs`. */
  log: string
}
/** A model server with what is known of it. */
export interface EndpointRow {
  id: string
  /** What a turn names: `endpoint/<id>`. */
  provider: string
  kind: 'server' | 'local' | 'trial'
  label: string
  protocol: WireProtocol
  /** Without user and query. */
  baseUrl?: string
  hasKey: boolean
  /** The names of the headers that are added; never a value. */
  headerNames: string[]
  status: EndpointStatus
  /** What is wrong and what to do. */
  detail?: string
  models: Count
  /** The default model; "" when there is none. */
  default: string
  /** The last answer of the server. */
  checkedAt?: Millis
  /** What its models cost. */
  prices?: ModelPrices
  /** For a model that this machine runs. */
  local?: LocalDetails
}
/** What a model server serves. */
export interface EndpointModels {
  models: ModelRow[]
  default: string
}
/** What worked when what was given did not. */
export interface EndpointSuggestion {
  baseUrl?: string
  protocol?: WireProtocol
}
/** What a test of a model server found. */
export interface EndpointTest {
  /** Its models were listed, and one answered. */
  ok: boolean
  /** Milliseconds to the first token. */
  latencyMs?: number
  /** The HTTP status of the last refusal. */
  status?: Count
  models: Count
  /** The model that was asked. */
  model?: string
  chat: 'ok' | 'failed' | 'skipped'
  /** The answer came piece by piece. */
  streaming: boolean
  tools: 'ok' | 'unsupported' | 'untested'
  suggestion?: EndpointSuggestion
  /** What is wrong, in the server's own words where it has some; never with the key. */
  detail?: string
}
/** What is left of the free trial. */
export interface TrialStatus {
  available: boolean
  allowance: Count
  used: Count
  remaining: Count
  health: 'unknown' | 'healthy' | 'degraded' | 'unavailable'
  /** ISO 8601. */
  resetsAt?: string
  /** ISO 8601. */
  retryAt?: string
  /** The model that answered the last message. */
  servedModel?: string
}

/** What model servers are for other groups. */
/** A model server as it is given as a connection. */
export interface ServerAsConnection {
  id: EndpointId
  /** `endpoint`: a server that runs somewhere; `localmodel`: a model that this machine runs. */
  kind: 'endpoint' | 'localmodel'
  config: { [field: string]: string | number | boolean }
}
export interface EndpointServices {
  /** Keeps a model server, as `POST /endpoints` does; the config has the fields of its body. */
  'endpoints.connect'(input: ServerAsConnection): CapabilityStatus
  /** Says how a model server stands. */
  'endpoints.condition'(input: { id: string }): CapabilityStatus
  /** Gives a model server as a turn speaks to it. 404: no such server. */
  'endpoints.target'(input: { id: string }): EndpointTarget
  /** Gives the price of a model of a server; none: nobody knows it. */
  'endpoints.price'(input: { id: string; model: string }): { price?: TokenPrice }
  /** Lists what can be chosen, without asking any server. */
  'endpoints.choices'(): { endpoints: EndpointChoice[] }
}

export interface EndpointCalls extends EndpointServices, LocalModelCalls {
  /**
   * List the model servers, and the free trial while it is available, with what is known of each.
   *
   * Servers that were last asked more than 60 s ago are asked after the answer. No key and no header value is in it.
   * How far a local model is being downloaded or loaded is current.
   */
  'GET /endpoints'(): { endpoints: EndpointRow[] }

  /**
   * Add a model server or a model that this machine runs, or replace the one of that id.
   *
   * A server is stored, then asked once for its models, at most 10 s; it stays stored whatever it answers, and `status`
   * says what that was. A local model is stored, and its work goes on behind the answer: its file is fetched and
   * checked, then `llama-server` serves it. Saving the same again changes nothing, and restarts only a local model that
   * is no longer tried.
   *
   * - 400: a line of `headers` that is none, or an address that is neither http nor https
   * - 409: the id is reserved, or is that of another kind of capability
   * - 422: the address has a user, a password or a query, or is that of this sandbox itself; or a local model that
   *   cannot load at all (with the bytes it needs and those there are), is not offered, or is to run on a card
   * - 501: `llama-server` is not installed, or cannot be contained
   * - 503: a key or header value was given and the secret store is locked; or capabilities cannot be stored
   */
  'POST /endpoints'(input: EndpointInput): EndpointRow

  /**
   * Remove a model server with its key, its headers and its stored list of models.
   *
   * The next turn of a conversation on it is refused until another model is chosen. The process of a local model ends,
   * and so does a download that only it waits for; its weights stay. Removing one that is gone succeeds.
   *
   * - 409: it is the free trial
   * - 503: capabilities cannot be stored
   */
  'DELETE /endpoints/{id}'(input: { id: EndpointId }): Ok

  /**
   * Try a model server: list its models, ask one of them for at most 16 tokens, then offer it a tool.
   *
   * A server that refuses is an answer too. Where the list fails, other addresses and protocols are tried, and
   * `suggestion` names what worked. A model that refuses tools is marked `helperOnly`, one that takes them is not. It
   * takes at most 30 s.
   *
   * - 404: no such server
   * - 429: it is being tested now
   * - 503: the secret store with its key is locked
   */
  'POST /endpoints/{id}/test'(input: {
    id: EndpointId
    /** The model to ask; its default when left out. */
    model?: string & tags.MinLength<1> & tags.MaxLength<200>
    /** Offer it a tool too; yes when left out. */
    tools?: boolean
  }): EndpointTest

  /**
   * List what a model server serves, as it says itself.
   *
   * An answer counts for 60 s; after that it is asked again, at most 10 s, and the last list stands in for one that
   * does not answer. Models that do not chat are left out. An empty list means that it has never answered with one.
   *
   * - 404: no such server
   */
  'GET /endpoints/{id}/models'(input: { id: EndpointId }): EndpointModels

  /**
   * Say what is left of the free trial, as its server says now, at most 5 s, else as it last said.
   *
   * Without a trial `available` is false and `health` `unknown`.
   */
  'GET /endpoints/trial/status'(): TrialStatus
}

/** A local model that a connection describes; says what is wrong with it otherwise. */
export const validateLocal = typia.createValidate<LocalInput>()

export const endpoints: Contract<EndpointCalls> = {
  schema: () => typia.json.application<EndpointCalls>(),
  request: typia.misc.createValidatePrune<Requests<EndpointCalls>>(),
  reply: () => typia.createValidate<Replies<EndpointCalls>>(),
}

/** Whether a value is what models cost. */
export const isModelPrices: (value: unknown) => value is ModelPrices = typia.createIs<ModelPrices>()
