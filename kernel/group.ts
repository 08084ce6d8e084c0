import { mkdir } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { isRoute, type Contract } from '../sdk/contract.js'
import type { Activate, Place } from '../sdk/host.js'
import { writeFailure } from '../sdk/node/files/disk.js'
import { Refusal, refuse } from '../sdk/refusal.js'
import { activateHere, withDeadline, type EndGroup } from './activation.js'
import type { PluginManifest } from './manifest.js'
import { activateApart } from './process.js'
import type { KernelServices, Registration } from './services.js'
import type { Waits } from './waits.js'
import { ignored } from '../sdk/ignored.js'

/** How long a group may take to start, in ms. */
const DEADLINE = 20_000

interface PluginModule {
  readonly contract: Contract
  readonly activate: Activate
}

/** What a group is started with. */
export interface GroupDeps {
  readonly kernel: KernelServices
  readonly place: Place
  /** The module's absolute path. */
  readonly entry: string
  /** Run it in a separate process. */
  readonly apart: boolean
  readonly waits: Waits
}

/** A group declared by a manifest. It starts on the first call, event or collect that needs it. */
export class Group {
  readonly manifest: PluginManifest
  readonly #deps: GroupDeps
  #module: Promise<PluginModule> | undefined
  #starting: Promise<void> | undefined
  #end: EndGroup | undefined
  #closed = false

  constructor(manifest: PluginManifest, deps: GroupDeps) {
    this.manifest = manifest
    this.#deps = deps
  }

  get started(): boolean {
    return this.#end !== undefined
  }

  /** Its contract; reading it does not start the group. */
  async contract(): Promise<Contract> {
    return (await this.#load()).contract
  }

  /**
   * Starts the group if needed; concurrent calls wait for the same start.
   *
   * @param by The plugin that needs it: two groups that need each other to start are refused instead of blocking.
   */
  async start(by?: string): Promise<void> {
    if (this.#end) return
    if (this.#closed) refuse('unavailable', 'the sandbox is stopping')
    const { waits } = this.#deps
    const { name } = this.manifest
    this.#starting ??= waits.during(name, this.#start()).finally(() => (this.#starting = undefined))
    await waits.wait(by, name, this.#starting)
  }

  /** Waits for a start in progress, then stops the group for good. */
  async stop(ms: number): Promise<void> {
    this.#closed = true
    await this.#starting?.catch(ignored('the caller that started it got the failure'))
    this.#deps.kernel.events.close(this.manifest.name)
    await this.#end?.(ms)
    this.#end = undefined
  }

  async #load(): Promise<PluginModule> {
    return (this.#module ??= import(pathToFileURL(this.#deps.entry).href) as Promise<PluginModule>)
  }

  async #start(): Promise<void> {
    const { kernel, place, entry, apart } = this.#deps
    const { name, boot } = this.manifest
    const registered: Registration = { served: new Map(), steps: [] }
    let activated: Promise<EndGroup> | undefined
    let end: EndGroup | undefined
    try {
      await mkdir(place.folder, { recursive: true, mode: 0o700 })
      const module = await this.#load()
      kernel.calls.describe(name, module.contract)
      activated = apart
        ? activateApart(kernel, this.manifest, registered, { entry, place, lost: () => this.#lost() })
        : activateHere(kernel, this.manifest, registered, { activate: module.activate, place })
      end = await withDeadline(DEADLINE, activated, `did not start within ${DEADLINE / 1000} s`)
      agree(this.manifest, [...registered.served.keys()])
      if (boot && !kernel.boot.ready) for (const { label, run } of registered.steps) kernel.boot.add(name, label, run)
      else for (const { run } of registered.steps) await run()
    } catch (error) {
      if (end) await end(0)
      // A group that finishes starting after the deadline is stopped again.
      else
        void activated?.then(
          late => late(0),
          () => {},
        )
      kernel.events.drop(name)
      const why = writeFailure(error)
      const message = `${name} cannot start: ${why instanceof Error ? why.message : why}`
      kernel.log(name).error(message)
      const full = why instanceof Refusal && why.reason === 'too-large'
      throw new Refusal(full ? 'too-large' : 'unavailable', message, { cause: error })
    }
    kernel.calls.open(name, registered.served)
    this.#end = end
    kernel.events.started(name)
  }

  /** Called when its process exits unexpectedly; the next call starts it again. */
  #lost(): void {
    const { kernel } = this.#deps
    kernel.events.drop(this.manifest.name)
    kernel.calls.close(this.manifest.name)
    this.#end = undefined
  }
}

/** A manifest declares exactly the calls its group serves. */
const agree = ({ routes, calls }: PluginManifest, served: readonly string[]): void => {
  for (const call of served) {
    if (isRoute(call) && !(call in routes)) throw new Error(`it serves ${call}, which has no access in its manifest`)
    if (!isRoute(call) && !calls.includes(call)) throw new Error(`it serves ${call}, which its manifest does not list`)
  }
  for (const call of [...Object.keys(routes), ...calls])
    if (!served.includes(call)) throw new Error(`its manifest names ${call}, which it does not serve`)
}
