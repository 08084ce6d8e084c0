import type { Host, ReachFolder } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { Kept } from '../../../sdk/node/files/kept.js'
import type { PathTree } from '../../../sdk/node/files/open-path.js'
import { sessionName } from '../../../sdk/node/programs/session-name.js'
import { sessionsByName, startSession } from '../../../sdk/node/programs/work-sessions.js'
import { shownCommand } from './managers.js'
import { projectsAt, type Project } from './projects.js'
import { installDigest } from './readiness.js'
import { ignored } from '../../../sdk/index.js'

const LAST_LINES = 60
const MOST_REMEMBERED = 1_000

/** An install that waits or runs. */
interface Job {
  readonly path: string
  readonly managers: readonly string[]
  /** What its programs see; absent: the whole workspace. */
  readonly only?: readonly ReachFolder[]
  /** What runs in its terminal; absent: it waits. */
  readonly command?: string
}

interface InstallBook {
  readonly jobs: readonly Job[]
  /** The digest of what was last installed, by language and folder. */
  readonly done: { readonly [project: string]: string }
  /** How many installs of a folder failed in a row. */
  readonly failed: { readonly [path: string]: number }
}

type InstallHost = Pick<Host, 'call' | 'emit' | 'files' | 'log' | 'on' | 'place' | 'serves' | 'signal'>

const EMPTY: InstallBook = { jobs: [], done: {}, failed: {} }
const keyOf = ({ ecosystem, path }: Pick<Project, 'ecosystem' | 'path'>): string => `${ecosystem} ${path}`
const without = <T>(all: { readonly [key: string]: T }, key: string): { readonly [key: string]: T } =>
  Object.fromEntries(Object.entries(all).filter(([each]) => each !== key))
const last = <T>(all: { readonly [key: string]: T }): { readonly [key: string]: T } =>
  Object.fromEntries(Object.entries(all).slice(-MOST_REMEMBERED))

/** The name of the terminal in which a folder is installed. */
export const installSession = (path: string): string => sessionName(path, 'install')

/** The queue of installs: it survives a restart, and runs one at a time for each package manager. */
export class Installs {
  readonly #host: InstallHost
  readonly #book: Kept<InstallBook>
  readonly #locks = new KeyedMutex()

  private constructor(host: InstallHost, book: Kept<InstallBook>) {
    this.#host = host
    this.#book = book
  }

  static async open(host: InstallHost): Promise<Installs> {
    const installs = new Installs(host, await Kept.open<InstallBook>(host.files, 'installs', EMPTY))
    const failed = (error: unknown) =>
      host.signal.aborted || host.log.warn('continuing installs failed', { error: String(error) })
    host.on('terminal.ended', ({ name, exitCode }) => void installs.#ended(name, exitCode).catch(failed))
    host.on('daemon.ready', () => void installs.#resume().catch(failed))
    return installs
  }

  isQueued(path: string): boolean {
    return this.#book.value.jobs.some(job => job.path === path)
  }

  /** Whether the last install of a folder failed: what is there may be half of it. */
  hasFailed(path: string): boolean {
    return Object.hasOwn(this.#book.value.failed, path)
  }

  /** The digest of what was last installed of a project. */
  doneOf(project: Project): string | undefined {
    return this.#book.value.done[keyOf(project)]
  }

  /** Adds installs; those of folders that are queued already are left out. */
  async add(jobs: readonly Omit<Job, 'command'>[]): Promise<string[]> {
    const added: string[] = []
    await this.#book.change(book => {
      added.splice(0)
      const fresh = jobs.filter(({ path }) => !book.jobs.some(job => job.path === path))
      added.push(...fresh.map(({ path }) => path))
      return fresh.length > 0 ? { ...book, jobs: [...book.jobs, ...fresh] } : book
    })
    if (added.length > 0) failpoint('workspace.install.queued')
    const failed = await this.#next()
    for (const path of added) if (failed.has(path)) throw failed.get(path)
    return added
  }

  /** Starts every install whose package managers are free; answers those that could not be started, with why. */
  #next(): Promise<ReadonlyMap<string, unknown>> {
    return this.#locks.with('next', async () => {
      const failed = new Map<string, unknown>()
      const busy = new Set<string>()
      for (const job of this.#book.value.jobs) {
        if (job.command === undefined && !job.managers.some(manager => busy.has(manager)))
          await this.#start(job).catch(async error => {
            failed.set(job.path, error)
            await this.#drop(job.path)
            this.#host.log.warn('starting an install failed', { path: job.path, error: String(error) })
          })
        if (this.isQueued(job.path)) job.managers.forEach(manager => busy.add(manager))
      }
      return failed
    })
  }

  async #start({ path, managers, only }: Job): Promise<void> {
    // As its files are now: they may have changed while it waited.
    const projects = await this.#projects(path, managers)
    if (projects.length === 0) return this.#drop(path)
    const command = projects.flatMap(({ install }) => install.map(shownCommand)).join(' && ')
    // Before it starts, because it may end before its start is reported here.
    await this.#change(path, job => ({ ...job, command }))
    await startSession(this.#host, {
      name: installSession(path),
      purpose: `install ${path}`,
      label: `Install ${path === '.' ? 'the workspace' : path}`.slice(0, 80),
      steps: projects.flatMap(({ install }) => install.map(program => ({ cwd: path, program: [...program] }))),
      env: { CI: 'true' },
      ...(only && { only: [...only] }),
    })
    this.#publish(path)
  }

  /** The projects of a folder that a job installs. */
  async #projects(path: string, managers: Job['managers']): Promise<Project[]> {
    return (await projectsAt(this.#tree(), path)).filter(({ manager }) => managers.includes(manager))
  }

  #tree(): PathTree {
    return { root: this.#host.place.workspace, reach: undefined, readsGit: false }
  }

  async #ended(name: string, exitCode: number | undefined): Promise<void> {
    const job = this.#book.value.jobs.find(({ path }) => installSession(path) === name)
    if (job?.command === undefined) return
    if (exitCode === undefined) await this.#drop(job.path)
    else await this.#finish(job, exitCode)
    await this.#next()
  }

  async #finish({ path, managers, command = '' }: Job, exitCode: number): Promise<void> {
    const projects = await this.#projects(path, managers)
    const digests = await Promise.all(
      projects.map(async project => [keyOf(project), await installDigest(this.#tree(), project)] as const),
    )
    let attempt = 0
    let mine = false
    await this.#book.change(book => {
      mine = book.jobs.some(job => job.path === path)
      attempt = book.failed[path] ?? 0
      if (!mine) return book
      return {
        jobs: book.jobs.filter(job => job.path !== path),
        done: exitCode === 0 ? last({ ...book.done, ...Object.fromEntries(digests) }) : book.done,
        failed:
          exitCode === 0 ? without(book.failed, path) : last({ ...without(book.failed, path), [path]: attempt + 1 }),
      }
    })
    if (!mine) return
    failpoint('workspace.install.ended')
    this.#publish(path)
    const project = path === '.' ? '' : path
    if (exitCode === 0 && attempt > 0) this.#host.emit('deps.fixed', { project, command, attempt })
    if (exitCode === 0) return
    const { text } = await this.#host.call('terminals.tail', { name: installSession(path), lines: LAST_LINES })
    this.#host.emit('deps.broken', { project, command, exitCode, attempt: attempt + 1, logTail: text })
  }

  /** Continues where the last daemon ended: an install whose terminal ended with it begins again. */
  async #resume(): Promise<void> {
    await this.#settle(path => this.#change(path, ({ command: _, ...waiting }) => waiting))
    await this.#next()
  }

  /** Takes note of installs whose end was not reported, as when the daemon started just then. */
  async settle(): Promise<void> {
    if (!this.#book.value.jobs.some(({ command }) => command !== undefined)) return
    await this.#settle(async () => {})
    await this.#next()
  }

  #settle(gone: (path: string) => Promise<void>): Promise<void> {
    return this.#locks.with('next', async () => {
      const { jobs } = this.#book.value
      if (jobs.length === 0) return
      const sessions = await sessionsByName(this.#host)
      for (const job of jobs) {
        if (job.command === undefined) continue
        const session = sessions.get(installSession(job.path))
        if (!session) await gone(job.path)
        else if (!session.running && session.exitCode !== undefined) await this.#finish(job, session.exitCode)
      }
    })
  }

  async #drop(path: string): Promise<void> {
    await this.#book.change(book => ({ ...book, jobs: book.jobs.filter(job => job.path !== path) }))
    this.#publish(path)
  }

  #change(path: string, edit: (job: Job) => Job): Promise<void> {
    return this.#book.change(book => ({
      ...book,
      jobs: book.jobs.map(job => (job.path === path ? edit(job) : job)),
    }))
  }

  #publish(path: string): void {
    void this.#host
      .call('kernel.events.publish', { domain: 'panels', key: path, within: [path] })
      .catch(ignored('clients read the state again when they connect'))
  }
}
