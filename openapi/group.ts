import type { OpenAccess, PluginManifest, RouteAccess } from '../kernel/manifest.js'
import type { Contract } from '../sdk/contract.js'

/** Who may use a route of the document. */
export type DocumentAccess = RouteAccess | (OpenAccess & { etag?: true })

/** One group for the document: its name, the access to its routes, and its contract. */
export interface PublishedGroup {
  readonly manifest: Pick<PluginManifest, 'name' | 'label' | 'summary'> & {
    readonly routes: { readonly [call: string]: DocumentAccess }
  }
  readonly contract: Pick<Contract, 'schema'> & { readonly examples?: () => object }
}
