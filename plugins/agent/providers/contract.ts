import type { tags } from 'typia'
import type { Count, Millis, Ok, Text } from '../../../sdk/types.js'
import type { Command, Harness } from '../turn/frames/frames.js'

/** The most recent refusal of a provider. `account` is left out for tokens. */
export interface ProviderRefusal {
  at: Millis
  kind: 'limit' | 'auth' | 'entitlement'
  message: string
  account?: string
}

/** A provider that is built in. */
export interface BuiltInProvider {
  id: string
  label: string
  harnesses: Harness[]
  models: string[]
}

/** A preferred model and its options. */
export interface WantedModel {
  provider: string
  model: string
  harness?: Harness
  effort?: string
  thinking?: boolean
  fast?: boolean
}

/** The commands and refusals of providers. */
export interface ProviderCalls {
  /**
   * List the shortcut commands of a provider.
   *
   * Invoking one is a prompt that starts with `/name`. A program's are those it last published, empty when there were
   * none. The sandbox's own loop has `compact`, the commands in files of the workspace that the caller reaches, and
   * skills, also before a first turn.
   *
   * - 422: unknown provider
   */
  'GET /agent/commands'(input: { agent?: Text }): { commands: Command[] }

  /**
   * List the most recent refusal of each provider: a used-up limit, an expired sign-in, or an account that may not use
   * it.
   */
  'GET /agent/refusals'(): { refusals: { [provider: string]: ProviderRefusal } }

  /** List the providers that need no connection. */
  'agent.providers'(): { providers: BuiltInProvider[] }
  /** Says of each provider that turns can name whether it could be used now, without asking the network. */
  'agent.runtimes'(): { runtimes: RuntimeStates }
  /** Finds the first of some models that a turn could run on now, by its place in the list. */
  'agent.usableModel'(input: { models: WantedModel[] }): { first?: Count }
  /** Refuses a provider, harness, model or account that no turn could run on. */
  'agent.assertChoice'(input: { agent?: string; harness?: Harness; model?: string; account?: string }): Ok
  /** The instructions of every model where nothing else is set: the sandbox's own. */
  'agent.instructions'(): { chars: Count; text: string }
}

/** Whether what runs turns could be used now. */
export interface ProviderRuntime {
  state: 'ready' | 'unavailable' | 'unknown'
  /** Why not. */
  detail?: string
  checkedAt: Millis
}
/** By provider, as a message names it. */
export interface RuntimeStates {
  [provider: string]: ProviderRuntime
}

/** Single answers of models, for other groups. */
export interface CompletionCalls {
  /**
   * Says which of some models could answer now, `<provider>:<model>` each; an empty list: those that the settings name
   * for the role, `quickModel` unless another is named.
   */
  'agent.completes'(input: { models: string[]; role?: string }): { available: boolean; model?: string; reason?: string }
  /**
   * Gives one answer of the first of some models that answers, without tools. An empty list as for `agent.completes`.
   * Stored values in the question are replaced by their references.
   *
   * - 424: none of them is connected, or none answered in time
   */
  'agent.complete'(input: { models: string[]; role?: string; system: string; prompt: Text; timeoutMs: Count }): {
    text: string
    model: string
  }
}

/** Numbers that say what a text is about, as an embedding model gives them. */
export type Embedding = number[]

/** What embedding models say that texts are about, for other groups. */
export interface EmbeddingCalls {
  /**
   * Gives an embedding for each of some texts, in their order, by a model `<provider>:<model>` of a model server or an
   * account.
   *
   * Stored values in the texts are replaced by their references, and what the privacy shield masks is masked. What it
   * cost is in the usage, and budgets hold it. A request is made once: the caller decides whether to ask again.
   *
   * - 422: no such model server or provider, or one whose protocol has no embeddings
   * - 424: it is not connected, refused, or did not answer in time
   * - 429: a budget is used up
   */
  'agent.embed'(input: {
    model: string & tags.MaxLength<200>
    texts: string[] & tags.MinItems<1> & tags.MaxItems<128>
    /** The texts are cut from longer ones: an end that may begin a stored value is left out. */
    cut?: boolean
    timeoutMs: Count
  }): { embeddings: Embedding[] }
}
