import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { refuse, type Host } from '../../../sdk/index.js'
import { cardsNamed, connectionsFrom, secretFieldsOf } from '../connections/connections.js'
import type { ExtensionProcess } from '../manifest/manifest.js'
import type { RunnableExtension } from '../runtime.js'

/** An extension whose program reads secrets. */
export type SecretsReader = Pick<RunnableExtension, 'id' | 'manifest'>

/** Whether a program finds secrets as files: keys that it names, or fields of connections that its manifest names. */
export const readsSecrets = ({ manifest }: SecretsReader, { secrets = [] }: ExtensionProcess): boolean =>
  secrets.length > 0 || cardsNamed(manifest).size > 0

/** The folders in which the background programs of extensions find secrets as files. */
export class ProcessSecrets {
  readonly #host: Pick<Host, 'call' | 'serves'>

  constructor(host: Pick<Host, 'call' | 'serves'>) {
    this.#host = host
  }

  /** The folder for a program that starts; undefined: it reads none. 409: a key that it needs has no value. */
  async mount(extension: SecretsReader, declared: ExtensionProcess): Promise<string | undefined> {
    if (!readsSecrets(extension, declared)) return undefined
    const { name, secrets: keys = [] } = declared
    if (!(await this.#host.serves('secrets.mount'))) {
      if (keys.length === 0) return undefined
      refuse('conflict', 'it needs secrets, and no store of secrets is served')
    }
    const folder = await this.#fill(extension, declared)
    const missing = keys.find(key => !existsSync(join(folder, key)))
    if (missing === undefined) return folder
    await this.unmount(extension.id, name)
    return refuse('conflict', `it needs the secret ${missing}, which is not stored or is bound to hosts: set it first`)
  }

  /** Brings the fields of connections in the folder of a running program up to date. */
  async refresh(extension: SecretsReader, declared: ExtensionProcess): Promise<void> {
    if (cardsNamed(extension.manifest).size === 0 || !(await this.#host.serves('secrets.mount'))) return
    await this.#fill(extension, declared)
  }

  async unmount(id: string, name: string): Promise<void> {
    if (await this.#host.serves('secrets.unmount'))
      await this.#host.call('secrets.unmount', { process: mounted(id, name) })
  }

  async #fill({ id, manifest }: SecretsReader, { name, secrets = [] }: ExtensionProcess): Promise<string> {
    const connections = await connectionsFrom(this.#host, cardsNamed(manifest))
    const names = [...secrets, ...connections.flatMap(secretFieldsOf)]
    return (await this.#host.call('secrets.mount', { process: mounted(id, name), names })).folder
  }
}

/** The name of a program for group secrets. */
const mounted = (id: string, name: string): string => `extension ${id}/${name}`
