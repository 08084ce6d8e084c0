import { signal } from '@preact/signals-core'
import type { LogLevel } from '../../../../sdk/log-line.js'
import { Refusal } from '../../../../sdk/refusal.js'
import { askDaemon, faultSentence } from './api.js'
import { shownLogLine, withLines, type ShownLogLine } from './log-lines.js'

/** Lines that arrive within this time are shown together. */
const GATHER = 100
const AGAIN = 2_000

/** A log that is followed, while the page is visible. */
export class LogFeed {
  readonly lines = signal<readonly ShownLogLine[]>([])
  readonly fault = signal('')
  readonly #name: string
  readonly #level: LogLevel | undefined
  readonly #ends = new AbortController()
  /** Where to continue. */
  #from: number | undefined
  #waiting: ShownLogLine[] = []
  #timer: ReturnType<typeof setTimeout> | undefined
  #count = 0
  #stream: AbortController | undefined

  constructor(name: string, level: LogLevel | undefined) {
    this.#name = name
    this.#level = level
    document.addEventListener('visibilitychange', this.#turn, { signal: this.#ends.signal })
    this.#turn()
  }

  stop(): void {
    this.#ends.abort()
    this.#stream?.abort()
    clearTimeout(this.#timer)
  }

  readonly #turn = (): void => {
    if (document.visibilityState === 'hidden') {
      this.#stream?.abort()
      this.#stream = undefined
      return
    }
    if (this.#stream) return
    this.#stream = new AbortController()
    void this.#follow(this.#stream.signal)
  }

  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const input = {
          name: this.#name,
          ...(this.#level && { level: this.#level }),
          ...(this.#from !== undefined && { from: this.#from }),
        }
        for await (const event of await askDaemon('GET /logs/follow', input, signal)) {
          if (!('kind' in event)) {
            this.#from = event.offset + new TextEncoder().encode(event.text).length + 1
            this.#add(event.text)
          } else if (event.kind === 'rotated') {
            this.#from = 0
            this.#add('— the log was rotated and begins again —')
          } else this.#add(`— ${event.lines} lines were left out because they came too fast —`)
        }
        if (!signal.aborted) this.fault.value = 'This log was removed.'
        return
      } catch (error) {
        if (signal.aborted) return
        this.fault.value = faultSentence(error)
        if (error instanceof Refusal && error.reason !== 'unavailable' && error.reason !== 'too-many') return
        await new Promise(resolve => setTimeout(resolve, AGAIN))
        if (!signal.aborted) this.fault.value = ''
      }
    }
  }

  #add(text: string): void {
    this.#waiting.push(shownLogLine(String((this.#count += 1)), text))
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.lines.value = withLines(this.lines.value, this.#waiting)
      this.#waiting = []
    }, GATHER)
  }
}
