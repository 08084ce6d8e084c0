import { isDeepStrictEqual } from 'node:util'
import { failpoint } from '../../sdk/node/failpoint.js'
import { EnvFile } from './env/env-file.js'
import { EnvTextError } from './env/env-text.js'
import type { OpenStore, StoreDeps } from './open-store.js'
import { openVault, readVault, type VaultContent, type VaultHead } from './vault/vault.js'
import { ignored } from '../../sdk/index.js'

type Head = Omit<VaultHead, 'check'>

/** A move that has begun: what it leaves where, until it is finished or undone. */
interface Move {
  /** The place that is left; nothing at the first setting up. */
  readonly from?: Head
  readonly to: Head
  /** The keys that it adds to the `.env` file it goes to. */
  readonly added: readonly string[]
}

const MOVE = 'move'

/** Notes what a move of the store has to clean up on either side, so that a killed daemon does it at its next start. */
export class StoreMoves {
  readonly #deps: StoreDeps

  constructor(deps: StoreDeps) {
    this.#deps = deps
  }

  async begin(move: { from: Head | undefined; to: Head; added: readonly string[] }): Promise<void> {
    await this.#deps.files.write(MOVE, move)
    failpoint('secrets.move.begun')
  }

  /** Adds values to a `.env` file, and reads all of them back. */
  async fill(env: EnvFile, add: ReadonlyMap<string, string>, all: ReadonlyMap<string, string>): Promise<void> {
    await env.edit(add, new Set())
    const found = await new EnvFile(this.#deps.workspace, env.path).values()
    for (const [name, value] of all)
      if (found.get(name) !== value) throw new Error(`${env.path} does not give ${name} back as it was stored`)
  }

  /** Opens a vault's bytes as a restart would, and compares what they hold. */
  async compare(bytes: Buffer, key: Buffer | undefined, content: VaultContent): Promise<void> {
    if (!key) throw new Error('the key of the new vault is not found again')
    if (!isDeepStrictEqual(openVault(readVault(bytes), key), JSON.parse(JSON.stringify(content))))
      throw new Error('the new vault does not hold what was stored')
  }

  /** Removes what a move left, wherever it was cut off: the old place, or what had begun of the new one. */
  async finish(now: OpenStore): Promise<void> {
    const move = await this.#deps.files.read<Move>(MOVE)
    if (!move) return
    const { from, to, added } = move
    try {
      if (now.head.key !== to.key) await this.#leave(to, now, added)
      else if (from) await this.#leave(from, now)
    } catch (error) {
      // Somebody broke the file meanwhile: it is looked at again at the next start, and the store works without it.
      if (error instanceof EnvTextError) return
      throw error
    }
    failpoint('secrets.move.cleaned')
    await this.#deps.files.remove(MOVE)
  }

  /** Removes what a failed move had begun. */
  async undo(now: OpenStore | undefined): Promise<void> {
    const move = await this.#deps.files.read<Move>(MOVE)
    if (now) return this.finish(now)
    if (move) await this.#deps.keys.destroy(move.to)
    await this.#deps.files.remove(MOVE)
  }

  /** Removes the values of a place from its `.env` file, as far as the store has them, and destroys its key. */
  async #leave(place: Head, now: OpenStore, only?: readonly string[]): Promise<void> {
    const { dotenv } = place
    if (dotenv !== undefined && dotenv !== now.head.dotenv) {
      const env = new EnvFile(this.#deps.workspace, dotenv)
      await env.sweep().catch(ignored('the next start sweeps it'))
      const stored = new Map(now.content.secrets.map(({ name, value }) => [name, value]))
      const values = await env.values()
      const drop = [...values].filter(
        ([name, value]) => stored.get(name) === value && (only === undefined || only.includes(name)),
      )
      await env.edit(new Map(), new Set(drop.map(([name]) => name)))
    }
    await this.#deps.keys.destroy(place)
  }
}
