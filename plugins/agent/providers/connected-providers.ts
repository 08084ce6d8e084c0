import type { ProviderAdapter } from './adapter.js'

/** Providers that people connect. */
export interface ConnectedProviders {
  /** The prefix of their ids, such as `agent/`; empty for those that no other has. */
  readonly prefix: string
  /** The connected provider of a name; undefined: there is none. */
  find(name: string): Promise<ProviderAdapter | undefined>
  /** The names of connected providers that could run a turn now. */
  ready(): Promise<readonly string[]>
}
