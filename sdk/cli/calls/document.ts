import { Unreached } from '../../client.js'
import { whichDaemon } from '../daemon/connection.js'
import { EXIT, CommandFailure, type GivenArguments, type Terminal } from '../verb.js'

/** The part of a JSON Schema that the command line reads. */
export interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly description?: string
  readonly properties?: { readonly [name: string]: Schema }
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly oneOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
}

/** The part of an operation (OpenAPI 3.1, section 4.8.10) that the command line reads. */
export interface DocumentOperation {
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly parameters?: readonly {
    readonly name: string
    readonly in: string
    readonly required?: boolean
    readonly description?: string
    readonly schema: Schema
  }[]
  readonly requestBody?: {
    readonly content: { readonly [form: string]: { readonly schema: Schema; readonly example?: unknown } }
  }
  readonly 'x-group': string
  readonly 'x-client-frame'?: unknown
}

/** The published document of a daemon. */
export interface OpenApiDocument {
  readonly paths: { readonly [path: string]: { readonly [method: string]: DocumentOperation } }
  readonly components: { readonly schemas: { readonly [name: string]: Schema } }
}

/** Fetches the document of the selected daemon; it needs no credential. */
export const readDocument = async (terminal: Terminal, given: GivenArguments): Promise<OpenApiDocument> => {
  const { url } = await whichDaemon(terminal, given)
  const answer = await fetch(new URL('/openapi.json', url), { signal: terminal.signal }).catch((error: unknown) => {
    throw new Unreached(`no daemon answers at ${url}`, error)
  })
  if (!answer.ok)
    throw new CommandFailure(
      EXIT.failed,
      `expected the document of the daemon at ${url}, found status ${answer.status}`,
    )
  return (await answer.json()) as OpenApiDocument
}
