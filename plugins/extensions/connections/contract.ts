import type { CapabilityId } from '../../capabilities/contract.js'

/** The settings of a connection, as text. */
export interface ConnectionConfig {
  [field: string]: string
}
/** A connection without values of its secrets. */
export interface ConnectionReferences {
  id: string
  kind: string
  /** Its fields; each secret one as its reference, such as `{{secret:tracker/token}}`. */
  config: ConnectionConfig
}

/** Connections for the extensions that use them. */
export interface ConnectionCalls {
  /**
   * Get the settings of a connection with references in place of its secrets, as an extension that may use it.
   *
   * The manifest names this call in `permissions.daemon`, and the card of the connection as `connection:<card>` in
   * `permissions.sandbox`. A backend sends the references with `host.fetch`, which fills in the values. A
   * background program finds them in the folder that SANDBOX_SECRETS_DIR names, as `<id>/<field>`. The seed of one-time
   * codes has no reference and no file.
   *
   * - 403: the manifest has no `connection:` entry for its card
   * - 404: no such connection
   */
  'GET /capabilities/{id}/connection'(input: { id: CapabilityId }): ConnectionReferences
}
