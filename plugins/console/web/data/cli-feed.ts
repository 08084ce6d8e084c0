import { signal } from '@preact/signals-core'
import type { ApplyRun, CliLine } from '../../../cli/contract.js'
import { Unreached } from '../../../../sdk/client.js'
import { askDaemon, faultSentence } from './api.js'

/** More lines than these are cut at their beginning. */
const MOST = 2000
/** Lines that arrive within this time are shown together. */
const GATHER = 100
/** How long it waits before it asks again for the lines of an apply. */
const AGAIN = 2000

/** A line with what tells it from others. */
export interface ShownCliLine {
  readonly key: string
  readonly line: CliLine
}

/** Lines of the command line as they come: those of an apply, or of a command that ends with its reader. */
export class CliFeed {
  readonly lines = signal<readonly ShownCliLine[]>([])
  readonly fault = signal('')
  /** Whether lines may still come. */
  readonly runs = signal(true)
  readonly #ends = new AbortController()
  #waiting: ShownCliLine[] = []
  #timer: ReturnType<typeof setTimeout> | undefined
  #count = 0

  /** @param args A command; left out: the current or last apply. */
  constructor(args?: readonly string[]) {
    void this.#follow(args)
  }

  stop(): void {
    this.#ends.abort()
    clearTimeout(this.#timer)
  }

  async #follow(args: readonly string[] | undefined): Promise<void> {
    const { signal } = this.#ends
    while (!signal.aborted) {
      try {
        const lines = args
          ? await askDaemon('POST /cli', { args: [...args] }, signal, undefined, true)
          : await askDaemon('GET /cli/apply/events', undefined, signal)
        this.fault.value = ''
        for await (const line of lines) if (line.kind !== 'heartbeat') this.#add(line)
        break
      } catch (error) {
        if (signal.aborted) return
        this.fault.value = faultSentence(error)
        // An apply goes on without the daemon, and the next one plays all of its lines; a command is never run twice.
        if (args || !(error instanceof Unreached)) break
        await new Promise(resolve => setTimeout(resolve, AGAIN))
        this.lines.value = []
        this.#waiting = []
      }
    }
    if (signal.aborted) return
    this.#show()
    this.runs.value = false
  }

  #show(): void {
    this.#timer = undefined
    this.lines.value = [...this.lines.value, ...this.#waiting].slice(-MOST)
    this.#waiting = []
  }

  #add(line: CliLine): void {
    this.#waiting.push({ key: String((this.#count += 1)), line })
    this.#timer ??= setTimeout(() => this.#show(), GATHER)
  }
}

/** What an apply would do to one service or app. */
export interface PlannedEntry {
  readonly id: string
  readonly type: string
  readonly action: string
  readonly detail?: string
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** What the lines of a plan say of each service and app. */
export const plannedEntries = (lines: readonly ShownCliLine[]): PlannedEntry[] =>
  lines.flatMap(({ line: { kind, id, type, action, detail } }) =>
    kind === 'node' && typeof action === 'string'
      ? [{ id: textOf(id), type: textOf(type), action, ...(typeof detail === 'string' && { detail }) }]
      : [],
  )

/** A line in words; undefined: it says nothing to a person. */
export const cliWords = ({ kind, ...line }: CliLine): { readonly text: string; readonly bad?: true } | undefined => {
  switch (kind) {
    case 'start':
      return { text: `sandbox ${textOf(line.command)}` }
    case 'log':
      return { text: textOf(line.message), ...(line.level === 'error' && { bad: true }) }
    case 'text':
      return { text: textOf(line.text) }
    case 'error':
      return { text: textOf(line.message), bad: true }
    case 'node': {
      const { id, state, action, detail } = line
      const words = [id, action, state === 'failed' ? 'failed' : state === 'start' ? '…' : 'done', detail]
      return { text: words.map(textOf).filter(Boolean).join(' '), ...(state === 'failed' && { bad: true }) }
    }
    case 'exit':
      return line.code === 0 ? undefined : { text: `It ended with exit code ${String(line.code)}.`, bad: true }
    default:
      return undefined
  }
}

/** The state of an apply as a word with its colour. */
export const applyWord = ({
  state,
}: Pick<ApplyRun, 'state'>): readonly ['good' | 'warn' | 'bad' | 'busy' | '', string] =>
  (
    {
      idle: ['', 'never applied'],
      running: ['busy', 'running'],
      succeeded: ['good', 'applied'],
      failed: ['bad', 'failed'],
      interrupted: ['warn', 'interrupted'],
    } as const
  )[state]
