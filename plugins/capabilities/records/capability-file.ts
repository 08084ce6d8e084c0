import { ConfigFile } from '../../../sdk/node/files/config-file.js'
import { refuse } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { ShownConfig } from './contract.js'

/** The file of connections, from the workspace. */
export const CAPABILITIES_FILE = '.sandbox/config/capabilities.json'

/** Words of routes, which no connection can have as its id. */
export const RESERVED: ReadonlySet<string> = new Set(['catalog', 'oauth', 'marketplace', 'recommendations'])

const ID = /^[a-zA-Z0-9][a-zA-Z0-9_-]{0,59}$/
const KIND = /^[a-z]{1,40}$/
const FIELD = /^[a-zA-Z][a-zA-Z0-9_]{0,59}$/
const MOST = 200

/** One entry of the file: its secret fields hold the marker. */
export interface FileEntry {
  readonly kind: string
  readonly label?: string
  readonly config: ShownConfig
}

/** What the file holds. */
export interface FileContent {
  readonly entries: ReadonlyMap<string, FileEntry>
  /** Why entries of it are not used, each as a sentence. */
  readonly problems: readonly string[]
  /** Why the whole file is not. */
  readonly wrong?: string
}

/** The file that says what is connected: read at each use, since people edit it, and written in one step. */
export class CapabilityFile {
  readonly #file: ConfigFile
  readonly #lock = new KeyedMutex()

  constructor(workspace: string) {
    this.#file = new ConfigFile(workspace, CAPABILITIES_FILE, 'connections')
  }

  async read(): Promise<FileContent> {
    const { keys, wrong } = await this.#file.load()
    const entries = new Map<string, FileEntry>()
    const problems: string[] = []
    for (const [id, value] of Object.entries(keys)) {
      const problem = RESERVED.has(id) ? `${id} is a reserved word` : wrongEntry(id, value)
      if (problem === undefined) entries.set(id, value as FileEntry)
      else problems.push(problem)
    }
    return { entries, problems, ...(wrong !== undefined && { wrong }) }
  }

  /** Changes one entry, adds it or removes it; everything else in the file stays as it is. */
  change(id: string, edit: (before: FileEntry | undefined) => FileEntry | undefined): Promise<void> {
    return this.#edit(keys => {
      const { [id]: before, ...others } = keys
      const known = before !== undefined && wrongEntry(id, before) === undefined
      const next = edit(known ? (before as FileEntry) : undefined)
      if (!next) return others
      if (before === undefined && Object.keys(others).length >= MOST)
        refuse('conflict', `there are ${MOST} connections already: remove one first`)
      return { ...keys, [id]: next }
    })
  }

  /** Gives an entry another id, in its place. */
  rename(id: string, to: string): Promise<void> {
    return this.#edit(keys =>
      Object.fromEntries(Object.entries(keys).map(([name, value]) => [name === id ? to : name, value])),
    )
  }

  sweep(): Promise<void> {
    return this.#file.sweep()
  }

  #edit(next: (keys: { readonly [id: string]: unknown }) => { readonly [id: string]: unknown }): Promise<void> {
    return this.#lock.with('file', async () => {
      const kept = await this.#file.load()
      if (kept.wrong !== undefined) refuse('unprocessable', kept.wrong)
      const keys = next(kept.keys)
      if (JSON.stringify(keys) !== JSON.stringify(kept.keys)) await this.#file.save({ keys, mode: kept.mode })
    })
  }
}

const isPlain = (value: unknown): value is { readonly [field: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Why an entry cannot be used as it stands; values are left out, since they may be secrets. */
const wrongEntry = (id: string, value: unknown): string | undefined => {
  const shown = JSON.stringify(id.slice(0, 60))
  if (!ID.test(id)) return `${shown} is no id: expected letters, digits, - and _, at most 60`
  if (!isPlain(value)) return `${shown}: expected an object with kind and config`
  const { kind, label, config } = value
  if (typeof kind !== 'string' || !KIND.test(kind)) return `${shown}: expected a kind, such as mcp`
  if (label !== undefined && typeof label !== 'string') return `${shown}: expected a text as label`
  if (!isPlain(config)) return `${shown}: expected an object as config`
  const bad = Object.entries(config).find(
    ([field, found]) => !FIELD.test(field) || !['string', 'number', 'boolean'].includes(typeof found),
  )
  return bad && `${shown}: expected a text, a number or a boolean as ${JSON.stringify(bad[0].slice(0, 60))}`
}
