import { randomUUID } from 'node:crypto'
import { Refusal, refuse, type Host } from '../../../sdk/index.js'
import { redacted } from '../../../sdk/node/access/redact.js'
import { runCounted } from '../../../sdk/node/limits/counted.js'
import { SELECTORS, unseenBut } from '../../../sdk/unseen.js'

/** A command as it is run. */
export interface RuleCommand {
  readonly command: string
  readonly timeoutMs: number
  /** The folder from the root of the tree; left out: where the tree's programs start. */
  readonly folder?: string
  readonly signal: AbortSignal
}

/** How a command ended; without an exit code it was ended, or could not be started. */
export interface RuleCommandEnd {
  readonly exitCode?: number
  readonly timedOut?: boolean
  /** The end of what it wrote, without credentials. */
  readonly output: string
}

/** Runs the commands of one moment. */
export interface RuleCommands {
  /** The terminal in which people see them. */
  readonly session?: string
  run(command: RuleCommand): Promise<RuleCommandEnd>
}

const MOST_OUTPUT = 24_000
const MOST_BYTES = 256 * 1024
const MOST_LINES = 1_000
const UNSEEN = unseenBut(String.raw`\t\n\u200c\u200d` + SELECTORS)
/** The terminal of commands before a push. */
export const PUSH_SESSION = 'job-checks'

/** What a command wrote, without what drives a terminal, hides or reorders text, and without credentials. */
const shown = (text: string): string => {
  const plain = text.toWellFormed().replace(/\r\n?/g, '\n').replace(UNSEEN, '')
  return redacted(plain).trim().slice(-MOST_OUTPUT).toWellFormed()
}

/** Runs commands in the tree of a conversation, behind its wall. */
export const treeCommands = (host: Pick<Host, 'call'>, id: string): RuleCommands => ({
  run: async ({ command, timeoutMs, folder, signal }) => {
    const asked = { id, command, ...(folder !== undefined && { folder }) }
    const counted = { conversationId: id, command: await host.call('checkouts.walled', asked) }
    const options = { timeoutMs, maxBytes: MOST_BYTES, signal }
    const { code, stdout, stderr, timedOut } = await runCounted(host, counted, options)
    const output = shown(`${stdout.toString()}${stderr}`)
    return timedOut ? { timedOut, output } : { exitCode: code, output }
  },
})

/** Runs commands in the workspace, one after another in a terminal that people see. */
export class TerminalCommands implements RuleCommands {
  readonly session = PUSH_SESSION
  readonly #host: Pick<Host, 'call' | 'serves'>
  /** Called with the exit code of the command in hand, by its purpose. */
  readonly #waiting = new Map<string, (exitCode: number | undefined) => void>()

  constructor(host: Pick<Host, 'call' | 'serves' | 'on'>) {
    this.#host = host
    host.on('terminal.ended', ({ purpose, exitCode }) => this.#waiting.get(purpose)?.(exitCode))
  }

  /** Ends the command that a killed daemon left running: the push that waited for it is over. */
  async endLeft(): Promise<void> {
    const host = this.#host
    if (this.#waiting.size > 0 || !(await host.serves('terminals.running'))) return
    const { sessions } = await host.call('terminals.running')
    if (this.#waiting.size === 0 && sessions.some(({ name, running }) => running && name === this.session))
      await host.call('terminals.stop', { name: this.session })
  }

  async run({ command, timeoutMs, folder = '.', signal }: RuleCommand): Promise<RuleCommandEnd> {
    const host = this.#host
    const name = this.session
    if (!(await host.serves('terminals.start'))) refuse('unavailable', 'terminals are not served: group system')
    signal.throwIfAborted()
    const purpose = `rule ${randomUUID()}`
    const ended = Promise.withResolvers<{ exitCode: number | undefined }>()
    this.#waiting.set(purpose, exitCode => ended.resolve({ exitCode }))
    const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
    try {
      // What an earlier daemon left there, if it is not ended yet.
      await host.call('terminals.stop', { name })
      const row = await host.call('terminals.start', {
        ...{ name, label: 'Checks before a push', purpose },
        steps: [{ cwd: folder, program: ['/bin/sh', '-c', command] }],
      })
      if (!row.running) ended.resolve({ exitCode: row.exitCode })
      const { exitCode, timedOut } = await Promise.race([
        ended.promise.then(({ exitCode }) => ({ exitCode, timedOut: false })),
        abortOf(limit).then(() => ({ exitCode: undefined, timedOut: true })),
      ])
      const { text } = await host.call('terminals.tail', { name, lines: MOST_LINES })
      if (timedOut) await host.call('terminals.stop', { name })
      signal.throwIfAborted()
      return { ...(exitCode !== undefined && { exitCode }), ...(timedOut && { timedOut }), output: shown(text) }
    } finally {
      this.#waiting.delete(purpose)
    }
  }
}

const abortOf = (signal: AbortSignal): Promise<void> => {
  const { promise, resolve } = Promise.withResolvers<void>()
  if (signal.aborted) resolve()
  signal.addEventListener('abort', () => resolve(), { once: true })
  return promise
}

/** Why a command could not be run, for people. */
export const whyNotRun = (error: unknown): string => Refusal.from(error).message
