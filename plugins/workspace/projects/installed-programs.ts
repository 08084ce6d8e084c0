import type { Place } from '../../../sdk/index.js'
import { listEnv } from '../../../sdk/node/programs/run.js'
import { homeOfWork } from '../../../sdk/node/wall/home.js'
import { runWalled } from '../../../sdk/node/wall/wall.js'

const KEPT_MS = 30_000
const PATIENCE_MS = 20_000
const LOOK = 'for each in "$@"; do command -v "$each" >/dev/null 2>&1 && echo "$each"; done; exit 0'

/** Which programs terminals find behind the wall, looked up at most every 30 s. */
export class InstalledPrograms {
  readonly #place: Pick<Place, 'workspace' | 'data' | 'hidden' | 'grants'>
  readonly #names: readonly string[]
  #found: { readonly at: number; readonly names: Promise<ReadonlySet<string>> } | undefined

  constructor(place: Pick<Place, 'workspace' | 'data' | 'hidden' | 'grants'>, names: readonly string[]) {
    this.#place = place
    this.#names = names
  }

  async has(name: string): Promise<boolean> {
    return (await this.#now()).has(name)
  }

  #now(): Promise<ReadonlySet<string>> {
    const now = performance.now()
    if (this.#found && now - this.#found.at < KEPT_MS) return this.#found.names
    const names = this.#look()
    this.#found = { at: now, names }
    names.catch(() => (this.#found = undefined))
    return names
  }

  async #look(): Promise<ReadonlySet<string>> {
    const { workspace, data, hidden, grants } = this.#place
    const home = await homeOfWork(data)
    const spec = { workspace, data, home, cwd: '/', env: listEnv(), hide: hidden, grants, only: [], offline: true }
    const { stdout } = await runWalled(spec, 'sh', ['-c', LOOK, 'sh', ...this.#names], { timeoutMs: PATIENCE_MS })
    return new Set(stdout.toString().split('\n').filter(Boolean))
  }
}
