import type { OpenAccess, PluginManifest, RouteAccess } from '../kernel/manifest.js'
import type { Contract } from '../sdk/contract.js'

/** Who may use a route of the document. */
export type DocumentAccess = RouteAccess | (OpenAccess & { etag?: true })

/** One group as the document needs it: its name, who may use its routes, and what they take and give. */
export interface PublishedGroup {
  readonly manifest: Pick<PluginManifest, 'name' | 'label' | 'summary'> & {
    readonly routes: { readonly [call: string]: DocumentAccess }
  }
  readonly contract: Pick<Contract, 'schema'> & { readonly examples?: () => object }
}
