import typia, { type tags } from 'typia'
import type { ThinkingForm, TokenPrice } from '../../endpoints/contract.js'

/** The id of a provider that is defined by a file or built in. */
export type DefinedProvider = string & tags.Pattern<'^[a-z][a-z0-9-]{0,39}$'>
/** How one signs in at a provider. */
export type SignInFlow = 'redirect' | 'code' | 'device' | 'key'

/** A path below the address of a provider. */
type ListPath = string & tags.Pattern<'^/[^\\s]*$'>

/** How one signs in at a provider, and how a request says who asks. */
export interface DefinedAuth {
  flows: SignInFlow[]
  authorizeUrl?: string
  tokenUrl?: string
  deviceUrl?: string
  revokeUrl?: string
  clientId?: string
  /** Sent with the client id, where a provider gives programs of people one too; it keeps nothing secret. */
  clientSecret?: string
  /**
   * What the code of the sign-in page is exchanged for: tokens (OAuth) when left out; `key`: a key that lasts, for the
   * code and its proof alone. That page takes `callback_url` and no client id.
   */
  grants?: 'key'
  /** The form of requests for tokens: `form` when left out, as OAuth says. */
  tokenBody?: 'form' | 'json'
  /** What else the sign-in page is given in its address. */
  parameters?: { [name: string]: string }
  redirectUri?: string
  scopes?: string[]
  /** Where the answer to a sign-in names the person: paths into it. */
  identity?: { email?: string; organization?: string }
  /** The header that carries the key. */
  header: 'bearer' | 'x-api-key'
  /** Where a person makes a key. */
  keyUrl?: string
  /** What a key is tried with, below the address; left out: the list of models. It needs a key and costs nothing. */
  probe?: ListPath
}
/** A model that a definition names. */
export interface DefinedModel {
  id: string & tags.MinLength<1> & tags.MaxLength<200>
  label: string & tags.MinLength<1>
  efforts?: string[]
  description?: string
  badges?: ('reasoning' | 'fast')[]
  contextWindow?: number & tags.Type<'uint32'>
  helperOnly?: 'no-tool-calls' | 'instant-tier'
}
/** What is known of some models of a provider, where its own list says nothing. */
export interface KnownModels {
  /** Ids, in which a `*` stands for any part. */
  match: string & tags.MinLength<1> & tags.MaxLength<200>
  /** Tokens. */
  window?: number & tags.Type<'uint32'>
  /** Tokens of one answer, the thoughts in it included. */
  output?: number & tags.Type<'uint32'>
  /** Levels of effort, the lowest first; none: they take none. */
  efforts?: string[]
  thinking?: ThinkingForm
  /** Whether they see pictures. */
  pictures?: boolean
  price?: TokenPrice
}
/** The models of a provider. */
export interface DefinedModels {
  /** Where its list is, below its address; `/models` when left out. */
  list?: ListPath
  /** The list is given without an account. */
  open?: boolean
  /** What it offers when it cannot be asked. */
  builtIn: DefinedModel[]
  /** The ids that come first. */
  prefer?: string[]
  /** Ids that are left out; a `*` stands for any part. */
  ignore?: string[]
  prices?: { [model: string]: TokenPrice }
  /** Of several that match an id the first one counts. */
  known?: KnownModels[]
}
/** One window of a limit. */
export interface DefinedWindow {
  kind: string
  label?: string
  /** Where it says how much is used in percent. */
  percent?: string
  /** Where it says how much there is in all and how much is left, in place of `percent`. */
  limit?: string
  remaining?: string
  resetsAt?: string
  models?: string[]
}
/** What a provider says of its limits. */
export interface DefinedLimits {
  from: 'headers' | 'get'
  url?: string
  windows: DefinedWindow[]
}
/** Words with which a provider refuses. */
export interface DefinedRefusal {
  match: string
  kind: 'limit' | 'auth' | 'entitlement'
}
/** A provider as its file describes it. */
export interface ProviderDefinition {
  id: DefinedProvider
  label: string & tags.MinLength<1> & tags.MaxLength<80>
  serving: 'native' | 'routed'
  protocol: 'openai' | 'anthropic'
  /** Of the protocol `openai` that is reached through the translator: it answers responses, no chat completions. */
  api?: 'responses'
  /** Where its calls are, such as `…/v1` for `…/v1/chat/completions`. */
  baseUrl: string
  auth: DefinedAuth
  limits?: DefinedLimits
  models: DefinedModels
  /** Its own agent program. */
  harness?: {
    /** Its command, split at blanks. */
    program: string
    install: string
    /** The protocol in which it asks the translator, of a routed provider: `messages` when left out. */
    protocol?: 'chat' | 'messages' | 'responses'
  }
  refusals?: DefinedRefusal[]
  /** Its models can be asked to answer faster, for more money. */
  fast?: boolean
}

/** The definition that a text holds as JSON; throws where it is none. */
export const parseDefinition = typia.json.createValidateParse<ProviderDefinition>()
/** The definition that a value is. */
export const checkDefinition = typia.createValidate<ProviderDefinition>()
