import { type FSWatcher, watch } from 'node:fs'
import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, contains } from '../../../sdk/node/files/paths.js'
import type { DefinitionProblem } from '../contract.js'
import { checkedDefinition } from './checked.js'
import type { ProviderDefinition } from './contract.js'

/** Where definitions come from, and who is told of a change. */
export interface DefinitionsDeps {
  readonly shipped: readonly ProviderDefinition[]
  /** The folder of the deployment. */
  readonly folder?: string
  /** No definition is taken from here, where turns write. */
  readonly workspace: string
  readonly signal: AbortSignal
  readonly changed: () => void
}

const MOST_BYTES = 1024 * 1024
const SETTLE = 150

/** The definitions of providers: those of the product, and those of the deployment, which come first of one id. */
export class Definitions {
  readonly #deps: DefinitionsDeps
  #given = new Map<string, ProviderDefinition>()
  #problems: DefinitionProblem[] = []
  #watcher: FSWatcher | undefined
  #reading = Promise.resolve()
  #timer: NodeJS.Timeout | undefined

  constructor(deps: DefinitionsDeps) {
    this.#deps = deps
    deps.signal.addEventListener('abort', () => {
      this.#watcher?.close()
      clearTimeout(this.#timer)
    })
  }

  /** Every definition, in order. */
  get all(): ProviderDefinition[] {
    const { shipped } = this.#deps
    const byId = new Map([...this.#given.values()].map(each => [each.id as string, each]))
    const first = shipped.map(each => byId.get(each.id) ?? each)
    return [...first, ...[...byId.values()].filter(({ id }) => !shipped.some(each => each.id === id))]
  }

  /** What was not loaded. */
  get problems(): DefinitionProblem[] {
    return structuredClone(this.#problems)
  }

  find(id: string): ProviderDefinition | undefined {
    return this.all.find(each => each.id === id)
  }

  /** Reads the folder of the deployment, and again when it changes. */
  async load(): Promise<void> {
    const { folder } = this.#deps
    if (folder === undefined) return
    await this.#read(folder)
    try {
      this.#watcher = watch(folder, { persistent: false }, () => this.#soon(folder))
      this.#watcher.on('error', () => this.#watcher?.close())
    } catch {
      // A folder that is not there is a problem already.
    }
  }

  #soon(folder: string): void {
    clearTimeout(this.#timer)
    if (this.#deps.signal.aborted) return
    this.#timer = setTimeout(() => {
      this.#reading = this.#reading.then(async () => {
        const before = JSON.stringify([this.all, this.#problems])
        await this.#read(folder)
        if (before !== JSON.stringify([this.all, this.#problems])) this.#deps.changed()
      })
    }, SETTLE).unref()
  }

  async #read(folder: string): Promise<void> {
    const given = new Map<string, ProviderDefinition>()
    const problems: DefinitionProblem[] = []
    try {
      if (contains(this.#deps.workspace, await realpath(folder)))
        throw new Error('the folder is in the workspace, where turns write: choose another')
      const files = (await readdir(folder)).filter(name => name.endsWith('.json') && !name.startsWith('.')).sort()
      for (const file of files) {
        try {
          const path = join(folder, file)
          if ((await stat(path)).size > MOST_BYTES) throw new Error('the file is larger than 1 MiB')
          given.set(file, checkedDefinition(file, await readFile(path, 'utf8')))
        } catch (error) {
          problems.push({ file, message: (error as Error).message })
          // A broken file keeps what it last said.
          const last = this.#given.get(file)
          if (last) given.set(file, last)
        }
      }
    } catch (error) {
      problems.push({
        file: folder,
        message: codeOf(error) === 'ENOENT' ? 'there is no such folder' : String((error as Error).message),
      })
    }
    this.#given = given
    this.#problems = problems
  }
}
