import { setTimeout as pause } from 'node:timers/promises'
import { isWithin, refuse, type Context, type Host, ignored } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import { Kept } from '../../sdk/node/files/kept.js'
import type { PathTree } from '../../sdk/node/files/open-path.js'
import { freePort } from '../../sdk/node/network/free-port.js'
import { addressOfApp, hideApp, repoLabel, showApp } from '../../sdk/node/programs/previews.js'
import { missingProgram } from '../../sdk/node/programs/run.js'
import { sessionName } from '../../sdk/node/programs/session-name.js'
import {
  serverOfSession,
  sessionsByName,
  startSession,
  type WorkSession,
} from '../../sdk/node/programs/work-sessions.js'
import { record } from '../../sdk/node/record/record.js'
import type { Panel } from './contract.js'
import { panelFactsOf, panelFolder, type PanelFacts } from './facts.js'
import type { PanelListener, PanelServers } from './servers.js'

/** A panel that somebody started. */
interface StartedPanel {
  readonly port: number
  /** When it was started; left out: somebody stopped it. */
  readonly startedAt?: number
}
interface PanelBook {
  readonly panels: { readonly [path: string]: StartedPanel }
}

/** Whether a panel runs and answers, without what the files of its repository say. */
export type LivePanel = Omit<Panel, keyof PanelFacts>

/** What is known of the machine at one moment. */
export interface SeenServers {
  readonly sessions: ReadonlyMap<string, WorkSession>
  readonly listeners: readonly PanelListener[]
}

const PURPOSE = 'panel '
const MOST = 500
const LOOK_MS = 2_000
const WAIT_MS = 200

const nameOf = (path: string): string => (path === '.' ? 'root' : path)
const sessionOf = (path: string): string => sessionName('', nameOf(path).replaceAll('/', '--'))

/** The development servers of repositories: a terminal each, and in the book which somebody started. */
export class Panels {
  readonly #host: Host
  readonly #servers: PanelServers
  readonly #book: Kept<PanelBook>
  readonly #locks = new KeyedMutex()
  /** Whether each running panel answered when it was last looked at. */
  readonly #healthy = new Map<string, boolean>()
  #timer: NodeJS.Timeout | undefined

  private constructor(host: Host, servers: PanelServers, book: Kept<PanelBook>) {
    this.#host = host
    this.#servers = servers
    this.#book = book
  }

  static async open(host: Host, servers: PanelServers): Promise<Panels> {
    const panels = new Panels(host, servers, await Kept.open<PanelBook>(host.files, 'panels', { panels: {} }))
    host.signal.addEventListener('abort', () => panels.#rest(), { once: true })
    return panels
  }

  /** Looks after the panels that the last daemon left running. */
  async resume(): Promise<void> {
    const sessions = await sessionsByName(this.#host)
    for (const path of Object.keys(this.#book.value.panels))
      if (this.#sessionAt(path, sessions)?.running) this.#watch(path)
  }

  /** What runs and listens now. */
  async see(): Promise<SeenServers> {
    const [sessions, listeners] = await Promise.all([sessionsByName(this.#host), this.#servers.listening()])
    return { sessions, listeners }
  }

  /** The panel of a repository; `nested` are the repositories below it, whose servers are theirs. */
  async panelAt(tree: PathTree, path: string, nested: readonly string[], seen: SeenServers): Promise<Panel> {
    return { ...(await this.liveAt(path, nested, seen)), ...(await panelFactsOf(tree, path)) }
  }

  /** The same without what its files say. */
  async liveAt(path: string, nested: readonly string[], { sessions, listeners }: SeenServers): Promise<LivePanel> {
    const session = this.#sessionAt(path, sessions)
    const own = session && serverOfSession(session)
    const name = sessionOf(path)
    const running = session?.running === true
    const here = listeners.filter(
      ({ cwd, port, session: terminal }) =>
        cwd !== undefined
        && port !== own?.port
        // The list of ports is older than the end of its terminal.
        && (running || terminal !== name)
        && isWithin(path, cwd)
        && !nested.some(other => other !== path && isWithin(path, other) && isWithin(other, cwd)),
    )
    const all = own ? [...here, { ...listeners.find(({ port }) => port === own.port), ...own, session: name }] : here
    const servers = await this.#servers.answering(path, all)
    const { startedAt } = this.#book.value.panels[path] ?? {}
    const port = own?.port ?? session?.port
    return {
      repo: nameOf(path),
      running,
      healthy: servers.length > 0,
      ...(running && port !== undefined && { port }),
      ...(running && (await addressOfApp(this.#host, repoLabel(path)))),
      ...(running && { session: name }),
      ...(running && startedAt !== undefined && { startedAt }),
      ...(!running && session?.exitCode !== undefined && { exitCode: session.exitCode }),
      servers,
    }
  }

  /** Starts a panel, or answers the one that runs. */
  start(tree: PathTree, path: string, restart: boolean, context: Context) {
    return this.#locks.with(path, async () => {
      const host = this.#host
      if (!/[A-Za-z0-9]/.test(nameOf(path)))
        refuse('unprocessable', `the repository ${JSON.stringify(path)} has no letter or digit for an address`)
      const known = this.#sessionAt(path, await sessionsByName(host))
      if (known?.running && !restart) return this.#shown(path, known)
      const folder =
        (await panelFolder(tree, path))
        ?? refuse('conflict', `${nameOf(path)} has no package with a dev script in operator/ or its root`)
      const plan = await host.call('installs.plan', { repo: path, path: folder })
      if (!plan.present) await missingProgram(plan.manager)
      if (plan.installing) refuse('conflict', `the dependencies of ${nameOf(path)} are being installed: wait for that`)
      if (plan.failed) refuse('conflict', `the install of ${nameOf(path)} failed: install its dependencies again`)
      if (known?.running) await host.call('terminals.stop', { name: sessionOf(path) })
      const port = await this.#assigned(path)
      failpoint('panels.noted')
      const row = await startSession(host, {
        name: sessionOf(path),
        purpose: PURPOSE + path,
        label: `Server of ${nameOf(path)}`.slice(0, 80),
        ...{ port, env: { PORT: String(port), BROWSER: 'none' } },
        steps: [...plan.steps, { cwd: folder, program: [plan.manager, 'run', 'dev'] }],
      })
      const extra = { repo: nameOf(path), session: sessionOf(path), port }
      await record(host, { type: 'panel.started', audience: 'viewer', outcome: 'ok', extra }, context)
      this.#watch(path)
      this.#publish(path)
      return this.#shown(path, row)
    })
  }

  /** Ends a panel and everything in its terminal. */
  stop(path: string, context: Context): Promise<void> {
    return this.#locks.with(path, async () => {
      const host = this.#host
      const running = this.#sessionAt(path, await sessionsByName(host))?.running === true
      if (running) await host.call('terminals.stop', { name: sessionOf(path) })
      await hideApp(host, repoLabel(path))
      const { port, startedAt } = this.#book.value.panels[path] ?? {}
      if (startedAt !== undefined) await this.#note(path, { port: port! })
      if (!running) return
      const extra = { repo: nameOf(path), session: sessionOf(path) }
      await record(host, { type: 'panel.stopped', audience: 'viewer', outcome: 'ok', extra }, context)
      this.#forget(path)
      this.#publish(path)
    })
  }

  /** The programs of a terminal ended. */
  async ended(purpose: string, exitCode: number | undefined): Promise<void> {
    if (!purpose.startsWith(PURPOSE)) return
    const path = purpose.slice(PURPOSE.length)
    // A call that ends the terminal is over then.
    const session = await this.#locks.with(path, async () => this.#sessionAt(path, await sessionsByName(this.#host)))
    if (!session?.running) this.#forget(path)
    this.#publish(path)
    // A terminal that somebody ended is gone, or the server runs in it again.
    if (exitCode === undefined || session?.running !== false) return
    const outcome = exitCode === 0 ? ('ok' as const) : ('error' as const)
    const extra = { repo: nameOf(path), exitCode }
    await record(this.#host, {
      ...{ type: 'panel.exited', audience: 'viewer', outcome, actor: 'sandbox:panels', extra },
    })
  }

  /** Waits until a panel is in a state, its terminal has ended, or the time is over. */
  async wait(
    read: () => Promise<LivePanel>,
    state: 'healthy' | 'stopped',
    waitMs: number,
    signal: AbortSignal,
  ): Promise<void> {
    const late = performance.now() + waitMs
    for (;;) {
      const panel = await read()
      if (!panel.running || (state === 'healthy' && panel.healthy)) return
      const rest = late - performance.now()
      if (rest <= 0) return
      await pause(Math.min(WAIT_MS, rest), undefined, { signal })
    }
  }

  async #shown(path: string, row: WorkSession) {
    const port = serverOfSession(row)?.port ?? row.port ?? this.#book.value.panels[path]!.port
    return {
      ok: true as const,
      session: sessionOf(path),
      port,
      ...(await showApp(this.#host, repoLabel(path), row)),
    }
  }

  /** The terminal of a panel, unless it is that of something else. */
  #sessionAt(path: string, sessions: SeenServers['sessions']): WorkSession | undefined {
    const found = sessions.get(sessionOf(path))
    return found?.purpose === PURPOSE + path ? found : undefined
  }

  /** The port that a panel is asked to listen on: the one it had, unless something else listens there. */
  #assigned(path: string): Promise<number> {
    // Two that start together must not get one port.
    return this.#locks.with(' ports', async () => {
      const { panels } = this.#book.value
      const taken = new Set(Object.entries(panels).flatMap(([other, { port }]) => (other === path ? [] : [port])))
      let port = await freePort(panels[path]?.port)
      while (taken.has(port)) port = await freePort()
      await this.#note(path, { port, startedAt: Date.now() })
      return port
    })
  }

  #note(path: string, panel: StartedPanel): Promise<void> {
    return this.#book.change(({ panels }) => {
      const { [path]: _before, ...others } = panels
      return { panels: Object.fromEntries([...Object.entries(others), [path, panel] as const].slice(-MOST)) }
    })
  }

  #publish(path: string): void {
    const host = this.#host
    void host
      .call('kernel.events.publish', { domain: 'panels', key: nameOf(path), within: [path] })
      .catch(ignored('clients read the state again when they connect'))
  }

  #forget(path: string): void {
    this.#healthy.delete(path)
    if (this.#healthy.size === 0) this.#rest()
  }

  #rest(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Looks at running panels, so that watchers learn when one begins or ceases to answer. */
  #watch(path: string): void {
    this.#healthy.set(path, false)
    if (this.#timer) return
    let looking = false
    const look = async () => {
      if (looking) return
      looking = true
      try {
        await this.#look()
      } catch (error) {
        if (!this.#host.signal.aborted) this.#host.log.warn('looking at panels failed', { error: String(error) })
      } finally {
        looking = false
      }
    }
    this.#timer = setInterval(() => void look(), LOOK_MS).unref()
  }

  async #look(): Promise<void> {
    const sessions = await sessionsByName(this.#host)
    for (const [path, before] of [...this.#healthy]) {
      const session = this.#sessionAt(path, sessions)
      if (!session?.running) {
        this.#forget(path)
        continue
      }
      const server = serverOfSession(session)
      const now = server !== undefined && (await this.#servers.answering(path, [server])).length > 0
      if (now === before || !this.#healthy.has(path)) continue
      this.#healthy.set(path, now)
      this.#publish(path)
    }
  }
}
