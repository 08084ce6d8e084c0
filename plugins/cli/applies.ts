import { randomUUID } from 'node:crypto'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { ignored, refuse, type Context, type Host } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import { needProgram } from '../../sdk/node/programs/run.js'
import { record } from '../../sdk/node/record/record.js'
import type { OwnProgram } from './commands.js'
import type { ApplyRun, CliLine } from './contract.js'
import { mountDeploySecrets } from './deploy-secrets.js'
import { isJobEnd } from './jobs/cli-lines.js'
import { followLines, readJobLines } from './jobs/line-file.js'
import { jobRuns, startJob } from './jobs/terminal-jobs.js'
import { runCredential } from './run-credential.js'

type ApplyHost = Pick<Host, 'call' | 'serves' | 'place' | 'log' | 'store' | 'signal'>

/** What is kept of the current or last apply beside its lines. */
interface KeptApply {
  readonly id: string
  readonly startedAt: number
  readonly by: string
  readonly session: string
  /** When it was seen to have ended. */
  readonly endedAt?: number
}

const KEY = 'apply'
const SESSION = 'job-deployment'
const CHAIN = ['resolve', 'apply', 'adopt'] as const
const PROGRAMS = ['git', 'ssh', 'ssh-add', 'ssh-agent'] as const
/** How often a job is looked at whose end nobody tells. */
const LOOK_MS = 1000

/** The current or last apply: one job in a terminal, which outlives the daemon. */
export class Applies {
  readonly #host: ApplyHost
  readonly #program: OwnProgram
  readonly #starts = new KeyedMutex()
  #kept: KeptApply | undefined
  /** Ends what the job of this daemon was given. */
  #release: (() => Promise<void>) | undefined
  #watches = false

  private constructor(host: ApplyHost, program: OwnProgram, kept: KeptApply | undefined) {
    this.#host = host
    this.#program = program
    this.#kept = kept
  }

  /** Adopts a job that an earlier daemon started. */
  static async open(host: ApplyHost, program: OwnProgram): Promise<Applies> {
    const applies = new Applies(host, program, await host.store.get<KeptApply>(KEY))
    await applies.#sweep()
    if (applies.#kept && applies.#kept.endedAt === undefined) applies.#watch()
    return applies
  }

  /** Removes lines of others than the last apply, which a daemon that was killed left. */
  async #sweep(): Promise<void> {
    const { folder } = this.#host.place
    const own = this.#kept && this.#fileOf(this.#kept)
    for (const name of await readdir(folder)) {
      const file = join(folder, name)
      if (/^apply-.*\.jsonl$/.test(name) && file !== own) await rm(file, { force: true })
    }
  }

  #fileOf({ id }: KeptApply): string {
    return join(this.#host.place.folder, `apply-${id}.jsonl`)
  }

  #runs(kept: KeptApply): Promise<boolean> {
    return kept.endedAt === undefined ? jobRuns(this.#host, kept.session, kept.id) : Promise.resolve(false)
  }

  async state(): Promise<ApplyRun> {
    const kept = this.#kept
    if (!kept) return { state: 'idle' }
    const isRunning = await this.#runs(kept)
    return applyOf(kept, await readJobLines(this.#fileOf(kept)), isRunning)
  }

  async isRunning(): Promise<boolean> {
    return this.#kept !== undefined && (await this.#runs(this.#kept))
  }

  /** Starts one as the caller, unless one runs; with `expect` only of what a plan showed. */
  async start(context: Context, expect?: string): Promise<void> {
    await this.#starts.with(KEY, () => this.#start(context, expect), context.signal)
  }

  async #start(context: Context, expect: string | undefined): Promise<void> {
    if (await this.isRunning()) return
    await this.#program.commands.facts()
    for (const program of PROGRAMS) await needProgram(program)
    const host = this.#host
    if (!(await host.serves('terminals.run'))) refuse('unavailable', 'terminals are not served: group system')
    const secrets = await mountDeploySecrets(host, 'cli-apply', context)
    const credential = await runCredential(host, context).catch(async (error: unknown) => {
      await secrets.release()
      throw error
    })
    const release = async () => {
      await Promise.all([secrets.release(), credential.end()])
    }
    const before = this.#kept
    const { actor } = context.caller
    const kept: KeptApply = { id: randomUUID(), startedAt: Date.now(), by: actor, session: SESSION }
    try {
      await writeFile(this.#fileOf(kept), '', { mode: 0o600 })
      await host.store.set(KEY, kept)
      this.#kept = kept
      failpoint('cli.apply.kept')
      const order = {
        program: this.#program.file,
        workspace: host.place.workspace,
        file: this.#fileOf(kept),
        commands: CHAIN.map(command => [
          'deploy',
          command,
          ...(command === 'apply' && expect !== undefined ? ['--expect', expect] : []),
        ]),
        ...(secrets.folder !== undefined && { secrets: secrets.folder }),
      }
      await startJob(host, { name: SESSION, label: 'Deployment', purpose: kept.id, order, env: credential.env })
    } catch (error) {
      await release()
      await (before ? host.store.set(KEY, before) : host.store.delete(KEY))
      this.#kept = before
      await rm(this.#fileOf(kept), { force: true })
      throw error
    }
    this.#release = release
    this.#watch()
    if (before) await rm(this.#fileOf(before), { force: true })
    await this.#announce()
    await record(host, { type: 'cli.apply.started', outcome: 'ok' }, context)
  }

  /** Notices within a second that the job has ended. */
  look(): void {
    void this.#noticeEnd().catch(error =>
      this.#host.log.warn('noting the end of an apply failed', { error: String(error) }),
    )
  }

  #watch(): void {
    if (this.#watches) return
    this.#watches = true
    const watching = async () => {
      while (this.#kept && this.#kept.endedAt === undefined) {
        await delay(LOOK_MS, undefined, { signal: this.#host.signal, ref: false })
        // What fails once, as on a full disk, is tried again: the end takes secrets and a credential away.
        await this.#noticeEnd().catch(error =>
          this.#host.log.warn('noting the end of an apply failed', { error: String(error) }),
        )
      }
    }
    void watching()
      .catch(ignored('the daemon stops, and the next one watches'))
      .finally(() => (this.#watches = false))
  }

  async #noticeEnd(): Promise<void> {
    await this.#starts.with(KEY, async () => {
      const kept = this.#kept
      if (!kept || kept.endedAt !== undefined || (await this.#runs(kept))) return
      const ended = { ...kept, endedAt: Date.now() }
      await this.#release?.()
      this.#release = undefined
      await this.#host.store.set(KEY, ended)
      this.#kept = ended
      const { state, code } = await this.state()
      await this.#announce()
      const extra = { state, ...(code !== undefined && { code }) }
      const outcome = state === 'succeeded' ? 'ok' : 'error'
      await record(this.#host, { type: 'cli.apply.ended', actor: kept.by, outcome, extra })
    })
  }

  async #announce(): Promise<void> {
    await this.#host
      .call('kernel.events.publish', { domain: 'cli' })
      .catch(error => this.#host.log.warn('publishing a change failed', { error: String(error) }))
  }

  /** The lines of the current or last apply with their numbers, until it ends or another begins. */
  async *follow(after: number, signal: AbortSignal): AsyncGenerator<{ number: number; line: CliLine } | undefined> {
    const kept = this.#kept
    if (!kept) return
    // The watch notes the end for all readers.
    const over = () => this.#kept?.id !== kept.id || this.#kept.endedAt !== undefined
    let number = 0
    for await (const line of followLines({ file: this.#fileOf(kept), over, signal })) {
      if (!line) yield undefined
      else if (!isJobEnd(line) && ++number > after) yield { number, line }
    }
  }
}

/** How an apply stands, by what is kept of it and what it printed. */
export const applyOf = (kept: KeptApply, lines: readonly CliLine[], isRunning: boolean): ApplyRun => {
  const { startedAt, by, session, endedAt } = kept
  const last = lines.findLast(({ kind }) => kind === 'start')
  const command = CHAIN.find(each => last?.command === `deploy ${each}`)
  const end = lines.findLast(isJobEnd)
  const state = end ? (end.code === 0 ? 'succeeded' : 'failed') : isRunning ? 'running' : 'interrupted'
  return {
    state,
    startedAt,
    by,
    session,
    ...(state !== 'running' && { endedAt: endedAt ?? Date.now() }),
    ...(command && { command }),
    ...(end && { code: end.code }),
  }
}
