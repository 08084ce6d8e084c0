import { randomUUID } from 'node:crypto'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { refuse, type Context, type Host } from '../../sdk/index.js'
import { ownEnv } from '../../sdk/node/programs/run.js'
import { linesWithin, NotTheProtocol, PipedProcess } from '../../sdk/node/programs/piped-process.js'
import { record } from '../../sdk/node/record/record.js'
import { redactedJson } from '../../sdk/node/access/redact.js'
import type { Applies } from './applies.js'
import { listedCommand, recordedArgs, type OwnProgram } from './commands.js'
import type { CliLine } from './contract.js'
import { mountDeploySecrets, readSecrets } from './deploy-secrets.js'
import { isJobEnd, lastLines, cliLineOf } from './jobs/cli-lines.js'
import { followLines, withHeartbeats } from './jobs/line-file.js'
import { maskedLine, maskOf } from './jobs/mask.js'
import { jobRuns, startJob, stopJob } from './jobs/terminal-jobs.js'
import { runCredential, type RunCredential } from './run-credential.js'

type RunsHost = Pick<Host, 'call' | 'serves' | 'place' | 'log' | 'signal'>

const SLOTS = [1, 2, 3, 4] as const
const MOST_RUNS = SLOTS.length
const terminalOf = (slot: number): string => `job-cli-${slot}`
const LONGEST_MS = 10 * 60_000
/** Between SIGTERM and SIGKILL. */
const GRACE_MS = 5000
const ERROR_LINES = 15
/** A longer line ends the run: the document itself has two MiB. */
const MOST_LINE = 32 * 1024 * 1024
/** Commands that people see in a terminal too. */
const SHOWN = new Set(['deploy resolve', 'deploy plan'])
/** Commands that change what an apply works with. */
const ALONE = new Set(['deploy resolve', 'deploy adopt'])
/** Commands that need the values of the deployment. */
const WITH_SECRETS = new Set(['deploy plan', 'deploy adopt', 'deploy status'])

/** How a command ended. */
interface RunEnd {
  readonly code: number
  readonly signal?: string
  readonly errors: string
}

/** Runs commands for people, each until its reader leaves. */
export class CliRuns {
  readonly #host: RunsHost
  readonly #program: OwnProgram
  readonly #applies: Pick<Applies, 'isRunning'>
  readonly #slots = new Set<number>()
  #swept: Promise<void> | undefined

  constructor(host: RunsHost, program: OwnProgram, applies: Pick<Applies, 'isRunning'>) {
    this.#host = host
    this.#program = program
    this.#applies = applies
  }

  /** Ends what a daemon that was killed left of its runs. */
  async #sweep(): Promise<void> {
    const { place } = this.#host
    for (const slot of SLOTS) await stopJob(this.#host, terminalOf(slot))
    for (const name of await readdir(place.folder))
      if (/^run-.*\.jsonl$/.test(name)) await rm(join(place.folder, name), { force: true })
  }

  get running(): number {
    return this.#slots.size
  }

  /** The lines of a command as it prints them; refuses one that fails. */
  async *run(args: readonly string[], context: Context): AsyncGenerator<CliLine, { code: 0 }> {
    const { commands } = await this.#program.commands.facts()
    const name = listedCommand(commands, args).args.join(' ')
    if (ALONE.has(name) && (await this.#applies.isRunning()))
      refuse('conflict', `an apply runs: ${name} waits until it has ended`)
    const slot = SLOTS.find(each => !this.#slots.has(each))
    if (slot === undefined)
      return refuse('too-many', `expected at most ${MOST_RUNS} runs at a time, found ${MOST_RUNS}: end one first`)
    this.#slots.add(slot)
    const late = AbortSignal.timeout(LONGEST_MS)
    const signal = AbortSignal.any([context.signal, this.#host.signal, late])
    const startedAt = Date.now()
    let end: RunEnd | undefined
    try {
      await (this.#swept ??= this.#sweep().catch((error: unknown) => {
        this.#swept = undefined
        throw error
      }))
      const credential = await runCredential(this.#host, context)
      try {
        end = yield* withHeartbeatsOf(this.#lines(name, args, slot, credential, context, signal))
      } catch (error) {
        if (late.aborted) refuse('dependency', `${name} was ended: it may take 10 minutes`)
        throw error
      } finally {
        await credential.end()
      }
    } finally {
      this.#slots.delete(slot)
      const extra = { args: recordedArgs(args), code: end?.code ?? -1, durationMs: Date.now() - startedAt }
      await record(this.#host, { type: 'cli.run', outcome: end?.code === 0 ? 'ok' : 'error', extra }, context)
    }
    if (!end) return refuse('dependency', `${name} was ended before it was over`)
    const { code, signal: by, errors } = end
    if (code === 0) return { code }
    const message = errors || `${name} ended with ${by ?? `exit code ${code}`}`
    return refuse('dependency', message, { fields: by === undefined ? { code } : { code, signal: by } })
  }

  async *#lines(
    name: string,
    args: readonly string[],
    slot: number,
    credential: RunCredential,
    context: Context,
    signal: AbortSignal,
  ): AsyncGenerator<CliLine | undefined, RunEnd | undefined> {
    const host = this.#host
    const secrets = WITH_SECRETS.has(name)
      ? await mountDeploySecrets(host, `cli-run-${slot}`, context)
      : { release: async () => {} }
    try {
      if (SHOWN.has(name) && (await host.serves('terminals.run')))
        return yield* this.#inTerminal({ args, slot, credential, signal, folder: secrets.folder })
      const values = await readSecrets(secrets.folder)
      await secrets.release()
      return yield* this.#inPipe(args, { ...credential.env, ...values }, maskOf(Object.values(values)), signal)
    } finally {
      await secrets.release()
    }
  }

  async *#inPipe(
    args: readonly string[],
    env: { readonly [name: string]: string },
    mask: (text: string) => string,
    signal: AbortSignal,
  ): AsyncGenerator<CliLine | undefined, RunEnd> {
    const child = new PipedProcess({
      program: process.execPath,
      args: [this.#program.file, ...args, '--json'],
      cwd: this.#host.place.workspace,
      env: await ownEnv(env),
      enforced: false,
    })
    child.input.end()
    let errors = ''
    child.onErrors = piece => (errors = (errors + piece).slice(-16 * 1024))
    const stop = () => void child.end(undefined, GRACE_MS)
    signal.addEventListener('abort', stop, { once: true })
    try {
      for await (const line of linesWithin(child.output, MOST_LINE))
        yield maskedLine(cliLineOf(redactedJson(line)), mask)
      const how = await child.ended
      signal.throwIfAborted()
      const code = Number(/exit code (\d+)$/.exec(how)?.[1] ?? 1)
      const [, by] = /ended by (\w+)$/.exec(how) ?? []
      return { code, errors: mask(lastLines(errors, ERROR_LINES)), ...(by !== undefined && { signal: by }) }
    } catch (error) {
      // Its output is closed when it is ended.
      signal.throwIfAborted()
      if (error instanceof NotTheProtocol) refuse('dependency', `the program ${error.message}`)
      throw error
    } finally {
      signal.removeEventListener('abort', stop)
      await child.end(undefined, GRACE_MS)
    }
  }

  async *#inTerminal({
    args,
    slot,
    credential,
    signal,
    folder,
  }: {
    readonly args: readonly string[]
    readonly slot: number
    readonly credential: RunCredential
    readonly signal: AbortSignal
    readonly folder: string | undefined
  }): AsyncGenerator<CliLine | undefined, RunEnd | undefined> {
    const host = this.#host
    const [name, purpose] = [terminalOf(slot), randomUUID()]
    const file = join(host.place.folder, `run-${purpose}.jsonl`)
    await writeFile(file, '', { mode: 0o600 })
    const order = {
      program: this.#program.file,
      workspace: host.place.workspace,
      file,
      commands: [args],
      ...(folder !== undefined && { secrets: folder }),
    }
    const ended = async () => !(await jobRuns(host, name, purpose))
    let over = false
    try {
      await startJob(host, {
        name,
        label: `sandbox ${args.join(' ')}`.slice(0, 80),
        purpose,
        order,
        env: credential.env,
      })
      yield { kind: 'terminal', session: name }
      for await (const line of followLines({ file, over: ended, signal })) {
        if (line && isJobEnd(line)) {
          over = true
          return line
        }
        yield line
      }
      return undefined
    } finally {
      // Its terminal is free for the next run when its process has gone, a moment after its last line.
      if (!over || !(await endsSoon(ended)))
        await stopJob(host, name).catch(error => host.log.warn('ending a run failed', { error: String(error) }))
      await rm(file, { force: true })
    }
  }
}

/** Puts heartbeats between the lines of a run, and answers how it ended. */
async function* withHeartbeatsOf(
  lines: AsyncGenerator<CliLine | undefined, RunEnd | undefined>,
): AsyncGenerator<CliLine, RunEnd | undefined> {
  let end: RunEnd | undefined
  async function* kept(): AsyncGenerator<CliLine | undefined> {
    end = yield* lines
  }
  yield* withHeartbeats(kept())
  return end
}

/** Waits at most 5 s until something has ended. */
const endsSoon = async (ended: () => Promise<boolean>): Promise<boolean> => {
  for (const last = Date.now() + GRACE_MS; Date.now() < last; await delay(20)) if (await ended()) return true
  return false
}
