import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Millis, Positive } from '../../sdk/types.js'
import type { ModelRow, TokenPrice } from '../endpoints/contract.js'
import type { DefinedProvider, ProviderDefinition, SignInFlow } from './definitions/contract.js'

export type { DefinedProvider, ProviderDefinition, SignInFlow } from './definitions/contract.js'

/** What the definitions of providers are for other groups. */
export interface DefinitionServices {
  /** Gives the price of a model; none: nobody knows it. */
  'definitions.price'(input: { provider: string; model: string }): { price?: TokenPrice }
  /** Gives the definition of a provider; none: there is no such provider. */
  'definitions.get'(input: { provider: string }): { definition?: ProviderDefinition }
  /** Lists the definitions in order. */
  'definitions.list'(): { definitions: ProviderDefinition[] }
  /**
   * Gives what a provider offers, without asking it.
   *
   * - 404: no such provider
   */
  'definitions.catalogue'(input: { provider: string }): ProviderCatalogue
  /**
   * Gives the model that a turn runs on: the wanted one, else the default.
   *
   * - 404: no such provider, or it does not offer the wanted model, or any: the message names near ones
   */
  'definitions.resolveModel'(input: { provider: string; model?: string }): { model: ModelRow }
}

/** What a provider offers. */
export interface ProviderCatalogue {
  /** In the provider's own order of preference. */
  models: ModelRow[]
  /** The model that is used when none is named; "" when there is none. */
  default: string
  /** Where it comes from: the provider now, its last answer, or the definition. */
  source: 'live' | 'stored' | 'built-in'
  /** When the provider answered with it. */
  at?: Millis
}
/** A provider, and whether a turn could start on it now. */
export interface ProviderRow {
  id: string
  label: string
  /** `script`: the offline provider that is built in. */
  serving: 'native' | 'routed' | 'script'
  /** What can run it. */
  harnesses: ('native' | 'vendor-code')[]
  flows: SignInFlow[]
  /** Signing in without a key takes a client of one's own, registered there with this address to come back to. */
  client?: { redirectUri: string }
  /** How many accounts are connected. */
  accounts: Count
  ready: 'yes' | 'no-account' | 'needs-reauth' | 'spent' | 'refused' | 'missing-program'
  /** Why it is not ready, and what to do. */
  detail?: string
  /** For `spent`: when it can be used again. */
  reopensAt?: Millis
  /** The model that is used when none is named. */
  default: string
  /** It costs money for each token, rather than a subscription. */
  paid: boolean
}
/** A definition that was not loaded. */
export interface DefinitionProblem {
  file: string
  message: string
}
/** Something a turn can be asked to run on. */
export interface Choice {
  /** What a turn names: a provider's id, `endpoint/<id>` or `agent/<id>`. */
  provider: string
  providerLabel: string
  model: ModelRow
  ready: boolean
  /** Why it is not. */
  reason?: string
  price?: TokenPrice
}
/** A page of what a turn can be asked to run on. */
export interface ChoicePage {
  choices: Choice[]
  /** How many match in all. */
  total: Count
  /** The next page is asked with it as `after`; none on the last one. */
  cursor?: string
}

export interface DefinedProviderCalls extends DefinitionServices {
  /**
   * List the providers, and whether a turn could start on each now.
   *
   * No provider is asked. `problems` names definitions that were not loaded, to maintainers and the owner only.
   */
  'GET /providers'(): { providers: ProviderRow[]; problems: DefinitionProblem[] }

  /**
   * List what a provider offers: as it says itself, else as it last said, else as its definition says.
   *
   * An answer of the provider counts for 10 minutes, unless `force` asks it again; it is asked for at most 10 s. Models
   * that do not chat are left out.
   *
   * - 403: `account` was given by somebody who is neither maintainer nor owner, or by a token
   * - 404: no such provider, or no such account
   */
  'GET /providers/{provider}/models'(input: {
    provider: DefinedProvider
    /** Ask the provider again. */
    force?: string
    /** Show what this account may use. */
    account?: string
  }): ProviderCatalogue

  /**
   * List everything that a turn can be asked to run on: models of providers, model servers, and agent programs.
   *
   * What is ready comes first. Nothing outside is asked.
   *
   * - 400: `after` is no cursor of an earlier page
   */
  'GET /providers/models'(input: {
    /** A part of the id or the label of a model. */
    q?: string & tags.MaxLength<80>
    /** Only what is ready. */
    ready?: '1'
    /** Only those of this provider. */
    provider?: string
    /** 200 when left out, at most 500. */
    limit?: Positive
    /** The cursor of the page before. */
    after?: string
  }): ChoicePage
}

export const providers: Contract<DefinedProviderCalls> = {
  schema: () => typia.json.application<DefinedProviderCalls>(),
  request: typia.misc.createValidatePrune<Requests<DefinedProviderCalls>>(),
  reply: () => typia.createValidate<Replies<DefinedProviderCalls>>(),
}
