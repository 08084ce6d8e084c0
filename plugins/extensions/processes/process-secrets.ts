import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { refuse, type Host } from '../../../sdk/index.js'

/** A file system in memory, on Linux. */
const IN_MEMORY = '/dev/shm'

interface Placed {
  readonly keys: readonly string[]
  readonly folder: string
  readonly detail: string
}

/** Stored values as files for running programs: one folder each, in memory where the machine has such a place. */
export class ProcessSecrets {
  readonly #host: Pick<Host, 'call' | 'serves' | 'place' | 'log'>
  readonly #placed = new Map<string, Placed>()

  constructor(host: Pick<Host, 'call' | 'serves' | 'place' | 'log'>) {
    this.#host = host
  }

  /** Removes what a killed daemon left. */
  async sweep(): Promise<void> {
    await rm(await this.#root(), { recursive: true, force: true })
  }

  /** Writes the values that a program asks for; answers their folder. 409: a value is not stored, or cannot be read. */
  async place(program: string, keys: readonly string[]): Promise<string> {
    await this.drop(program)
    const root = await this.#root()
    await mkdir(root, { recursive: true, mode: 0o700 })
    const placed = { keys, folder: await mkdtemp(join(root, 'p-')), detail: `process ${program}` }
    this.#placed.set(program, placed)
    for (const key of keys) {
      const value = await this.#value(key, placed.detail)
      if (value === undefined) {
        await this.drop(program)
        refuse('conflict', `it needs the secret ${key}, which is not stored or is bound to hosts: set it first`)
      }
      await this.#write(placed.folder, key, value!)
    }
    return placed.folder
  }

  /** A value changed or is gone: programs that run find it so. */
  async changed(key: string): Promise<void> {
    for (const { keys, folder, detail } of [...this.#placed.values()]) {
      if (!keys.includes(key)) continue
      const value = await this.#value(key, detail)
      if (value === undefined) await rm(join(folder, key), { force: true })
      else await this.#write(folder, key, value)
    }
  }

  /** A program has ended. */
  async drop(program: string): Promise<void> {
    const placed = this.#placed.get(program)
    this.#placed.delete(program)
    if (placed) await rm(placed.folder, { recursive: true, force: true })
  }

  async #value(key: string, detail: string): Promise<string | undefined> {
    if (!(await this.#host.serves('secrets.resolve'))) return undefined
    return (await this.#host.call('secrets.resolve', { text: `{{secret:${key}}}`, lane: 'shell', detail })).text
  }

  async #write(folder: string, key: string, value: string): Promise<void> {
    const next = join(folder, `.${key}`)
    await writeFile(next, value, { mode: 0o600 })
    await rename(next, join(folder, key))
  }

  /** One folder for each data folder. */
  async #root(): Promise<string> {
    const memory = await stat(IN_MEMORY).catch(() => undefined)
    const name = createHash('sha256').update(this.#host.place.data).digest('hex').slice(0, 16)
    return join(memory?.isDirectory() ? IN_MEMORY : tmpdir(), `sandbox-secrets-${process.getuid?.() ?? 0}-${name}`)
  }
}
