import type { Host } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { ExtensionProcessExit } from '../../../sdk/node/extension/protocol.js'
import { record } from '../../../sdk/node/record/record.js'
import { BACKEND_LIMITS } from '../backend/process/limits.js'
import type { ExtensionProcess } from '../manifest/manifest.js'
import type { ExtensionRecords, RunnableExtension } from '../runtime.js'
import type { OwnedProcess } from '../../system/contract.js'
import type { GroupRoute } from '../../../sdk/kernel.js'
import type { ExtensionProcessStatus } from './contract.js'
import { daemonAccess } from './daemon-access.js'
import { processCommand } from './process-command.js'
import { ProcessSecrets, readsSecrets } from './process-secrets.js'
import { ProcessSessions, purposeOf, processSessionOf } from './process-sessions.js'
import { SupervisedProcess, type SupervisedDeps } from './supervised-process.js'
import { ignored } from '../../../sdk/index.js'

/** What background programs are run with. */
export interface ProcessesDeps {
  readonly host: Host
  readonly records: Pick<ExtensionRecords, 'settings' | 'changed'>
  /** The served routes. */
  readonly routes: () => readonly GroupRoute[]
  readonly limits?: SupervisedDeps['limits']
}

interface Running {
  readonly process: SupervisedProcess
  readonly extension: RunnableExtension
}

/** The background programs of all extensions. */
export class ExtensionProcesses {
  readonly #deps: ProcessesDeps
  /** By id, then by name. */
  readonly #running = new Map<string, Map<string, Running>>()
  /** Stopped by somebody: these do not start by themselves. */
  readonly #held = new Set<string>()
  readonly #turns = new KeyedMutex()
  readonly #sessions: ProcessSessions
  readonly #secrets: ProcessSecrets
  /** The addresses of those that are shown, by id and name. */
  readonly #addresses = new Map<string, string>()
  readonly #listeners = new Map<string, Set<(exit: ExtensionProcessExit) => void>>()

  constructor(deps: ProcessesDeps) {
    this.#deps = deps
    this.#sessions = new ProcessSessions(deps.host)
    this.#secrets = new ProcessSecrets(deps.host)
  }

  /**
   * Takes over the programs that outlived the daemon before this one: what may run and needs nothing of that daemon
   * goes on, what needs it is started anew, and the rest is ended.
   */
  async recover(runnable: (id: string) => Promise<RunnableExtension | undefined>): Promise<void> {
    for (const left of await this.#sessions.running()) {
      const { id, name, revision, session } = left
      const extension = await runnable(id)
      const declared = declaredBy(extension).find(each => each.name === name)
      await this.#turns.with(id, async () => {
        if (extension && declared && goesOn(extension, declared, revision)) {
          const process = this.#processOf(extension, declared)
          process.adopt(left)
          return
        }
        await this.#sessions.end(session)
        if (extension && declared) await this.#begin(extension, declared).catch(ignored('its state says why'))
      })
    }
  }

  /** Gives programs that run the secret fields of the connections that there are now. */
  async connectionsChanged(): Promise<void> {
    const running = [...this.#running.values()].flatMap(known => [...known.values()])
    for (const { process, extension } of running)
      await this.#turns.with(extension.id, async () => {
        if (process.isUp) await this.#secrets.refresh(extension, process.declared)
      })
  }

  /** The run of a program ended; without an exit code somebody removed its session. */
  ended(purpose: string, exitCode: number | undefined): void {
    for (const known of this.#running.values())
      for (const { process } of known.values()) process.over(purpose, exitCode)
  }

  /** Starts and stops what has to, where `extension` is what may run now; resolves when the ended ones are gone. */
  converge(id: string, extension: RunnableExtension | undefined): Promise<void> {
    return this.#turns.with(id, async () => {
      const declared = declaredBy(extension)
      const known = this.#of(id)
      for (const [name, { process, extension: before }] of [...known]) {
        const now = declared.find(each => each.name === name)
        if (now && before.revision === extension!.revision) continue
        const wasUp = process.isUp
        await this.#end(id, name)
        if (now && wasUp) await this.#begin(extension!, now).catch(ignored('its state says why'))
      }
      for (const each of declared)
        if (each.autoStart && !known.has(each.name) && !this.#held.has(`${id} ${each.name}`))
          await this.#begin(extension!, each).catch(ignored('its state says why'))
    })
  }

  start(extension: RunnableExtension, declared: ExtensionProcess): Promise<void> {
    const { id } = extension
    return this.#turns.with(id, async () => {
      this.#held.delete(`${id} ${declared.name}`)
      const known = this.#of(id).get(declared.name)
      if (known && known.extension.revision === extension.revision) return known.process.start()
      await this.#end(id, declared.name)
      await this.#begin(extension, declared)
    })
  }

  /** Stops a program; it does not start by itself until somebody starts it. */
  stop(id: string, name: string): Promise<void> {
    this.#held.add(`${id} ${name}`)
    return this.#turns.with(id, async () => {
      await this.#of(id).get(name)?.process.stop()
      await this.#secrets.unmount(id, name)
      await this.#hide(id, name)
    })
  }

  /** How a declared program stands. */
  status(id: string, name: string): ExtensionProcessStatus {
    const none = { name, running: false, state: 'stopped' as const, session: processSessionOf(id, name), restarts: 0 }
    const status = this.#running.get(id)?.get(name)?.process.status ?? none
    const previewUrl = status.running ? this.#addresses.get(`${id} ${name}`) : undefined
    return { ...status, ...(previewUrl && { previewUrl }) }
  }

  /** The programs that run, as group system and group ports attribute their processes. */
  get owned(): OwnedProcess[] {
    return [...this.#running].flatMap(([id, known]) =>
      [...known].flatMap(([name, { process }]) => {
        const { pid } = process.status
        return pid === undefined ? [] : [{ pid, origin: 'extension' as const, session: processSessionOf(id, name) }]
      }),
    )
  }

  /** Calls the listener with each end of a program, until the answered function is called. */
  onExit(id: string, listener: (exit: ExtensionProcessExit) => void): () => void {
    const listeners = this.#listeners.get(id) ?? new Set()
    this.#listeners.set(id, listeners.add(listener))
    return () => {
      if (listeners.delete(listener) && listeners.size === 0) this.#listeners.delete(id)
    }
  }

  /** The daemon stops; sessions of tmux go on, and the next daemon takes them over. */
  close(): void {
    for (const known of this.#running.values()) for (const { process } of known.values()) process.leave()
  }

  #of(id: string): Map<string, Running> {
    const known = this.#running.get(id) ?? new Map<string, Running>()
    this.#running.set(id, known)
    return known
  }

  async #begin(extension: RunnableExtension, declared: ExtensionProcess): Promise<void> {
    await this.#processOf(extension, declared).start()
  }

  #processOf(extension: RunnableExtension, declared: ExtensionProcess): SupervisedProcess {
    const { host, records, routes, limits = BACKEND_LIMITS } = this.#deps
    const { id, revision } = extension
    const { name } = declared
    const session = processSessionOf(id, name)
    const process: SupervisedProcess = new SupervisedProcess(declared, {
      ...{ limits, session },
      purpose: () => purposeOf(id, name, revision),
      run: (purpose, command) => this.#sessions.run(session, `${name} of ${id}`, purpose, command),
      end: () => this.#sessions.end(session),
      command: async before => {
        const secrets = await this.#secrets.mount(extension, declared)
        const env = settingVariables(extension, await records.settings(id))
        const access = await daemonAccess(host, extension, routes())
        try {
          return await processCommand({
            ...{ place: host.place, extension, declared, env, access, before },
            ...(secrets !== undefined && { secrets }),
          })
        } catch (error) {
          access.end()
          throw error
        }
      },
      changed: () => {
        records.changed(id)
        if (process.status.running) void this.#show(id, declared, process.status)
      },
      exited: end => this.#listeners.get(id)?.forEach(listener => listener({ name, ...end })),
      quarantined: why => {
        const extra = { process: name }
        const error = why.slice(0, 500)
        void record(host, { type: 'extension.quarantined', actor: `extension:${id}`, outcome: 'error', error, extra })
      },
    })
    this.#of(id).set(name, { process, extension })
    return process
  }

  async #end(id: string, name: string): Promise<void> {
    const known = this.#of(id)
    await known.get(name)?.process.stop()
    known.delete(name)
    await this.#secrets.unmount(id, name)
    await this.#hide(id, name)
  }

  /** Gives a program that runs its address, where its manifest asks for one. */
  async #show(id: string, { name, preview }: ExtensionProcess, { pid, port }: ExtensionProcessStatus): Promise<void> {
    const { host, records } = this.#deps
    if (!preview || pid === undefined || !(await host.serves('preview.register'))) return
    const target = { pid, ...(port !== undefined && { port }) }
    try {
      const { url } = await host.call('preview.register', { label: labelOf(id, name), target })
      if (url !== undefined) this.#addresses.set(`${id} ${name}`, url)
      records.changed(id)
    } catch (error) {
      host.log.warn('a program of an extension got no preview', { id, name, error: String(error) })
    }
  }

  async #hide(id: string, name: string): Promise<void> {
    const { host } = this.#deps
    if (!this.#addresses.delete(`${id} ${name}`) || !(await host.serves('preview.unregister'))) return
    await host.call('preview.unregister', { label: labelOf(id, name) })
  }
}

/** The label of the preview of a program. */
const labelOf = (id: string, name: string): string => `extension-${id}--${name}`

const declaredBy = (extension: RunnableExtension | undefined): readonly ExtensionProcess[] =>
  extension?.manifest.contributes?.processes ?? []

/** Whether a program of a daemon before this one goes on: its secrets and its credential end with the daemon. */
const goesOn = (extension: RunnableExtension, declared: ExtensionProcess, startedFrom: string): boolean =>
  extension.revision.slice(0, startedFrom.length) === startedFrom
  && !readsSecrets(extension, declared)
  && extension.manifest.contributes?.listener === undefined
  && (extension.manifest.permissions?.daemon ?? []).length === 0

/** The settings that the manifest gives the name of a variable; a secret one is no value here. */
const settingVariables = (
  { manifest }: RunnableExtension,
  values: { readonly [key: string]: string | number | boolean },
): { [name: string]: string } =>
  Object.fromEntries(
    (manifest.contributes?.settings ?? []).flatMap(({ key, env, secret }) =>
      env === undefined || secret || values[key] === undefined ? [] : [[env, String(values[key])]],
    ),
  )
