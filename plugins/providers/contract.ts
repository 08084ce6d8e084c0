/** What tokens cost, in US dollars per million. */
export interface TokenPrice {
  input: number
  output: number
  cacheRead?: number
  cacheWrite?: number
}

/** What the definitions of providers are for other groups. */
export interface DefinitionServices {
  /** Gives the price of a model; none: nobody knows it. */
  'definitions.price'(input: { provider: string; model: string }): { price?: TokenPrice }
}
