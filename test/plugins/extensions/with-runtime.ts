import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { serveExtensions } from '../../../plugins/extensions/serving.js'
import type {
  BackendStatus,
  ExtensionRecords,
  ExtensionRuntime,
  RunnableExtension,
} from '../../../plugins/extensions/seam.js'
import type { Host } from '../../../sdk/index.js'

export { contract } from '../../../plugins/extensions/plugin.js'

const RUN = `const { activate } = await import(process.argv[1])
await activate({ routes: { handle: () => {} } })
process.stdout.write('up')
setInterval(() => {}, 1 << 30)`

/** Runs each backend as a plain process, and nothing else of what the product's runtime does. */
class PlainRuntime implements ExtensionRuntime {
  readonly #records: ExtensionRecords
  readonly #running = new Map<string, { child: ChildProcess; status: BackendStatus }>()

  constructor(records: ExtensionRecords) {
    this.#records = records
  }

  async start({ id, dir, manifest }: RunnableExtension): Promise<void> {
    await this.stop(id)
    const file = pathToFileURL(join(dir, manifest.server!)).href
    const child = spawn(process.execPath, ['--input-type=module', '-e', RUN, file], {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: {},
    })
    const run = { child, status: { state: 'starting' } as BackendStatus }
    this.#running.set(id, run)
    const becomes = (status: BackendStatus) => {
      if (this.#running.get(id) !== run) return
      run.status = { ...status, detail: `pid ${child.pid}` }
      this.#records.changed(id)
    }
    child.stdout.once('data', () => becomes({ state: 'running' }))
    child.once('exit', () => becomes({ state: 'error' }))
  }

  async stop(id: string): Promise<void> {
    const run = this.#running.get(id)
    this.#running.delete(id)
    if (!run || run.child.exitCode !== null || run.child.signalCode !== null) return
    const exited = once(run.child, 'exit')
    run.child.kill('SIGKILL')
    await exited
  }

  status(id: string): BackendStatus | undefined {
    return this.#running.get(id)?.status
  }

  settingsChanged(): void {}

  async close(): Promise<void> {
    await Promise.all([...this.#running.keys()].map(id => this.stop(id)))
  }
}

export const activate = (host: Host): Promise<void> => serveExtensions(host, records => new PlainRuntime(records))
