import type { Frame } from '../frames/frames.js'

/** Counts the rounds of a turn's own calls in which one failed; a round ends when its model says something. */
export class FailedRounds {
  #count = 0
  #counted = false
  readonly #ofSubagents = new Set<string>()

  /** The rounds that failed, after this frame. */
  add(frame: Frame): number {
    switch (frame.kind) {
      case 'delta':
      case 'thinking':
        if (frame.parentToolUseId === undefined) this.#counted = false
        break
      case 'usage':
        if (frame.subagent === undefined) this.#counted = false
        break
      case 'tool_call':
        if (frame.parentToolUseId !== undefined) this.#ofSubagents.add(frame.id)
        this.#end(frame.id, frame.status)
        break
      case 'tool_call_update':
        this.#end(frame.id, frame.status)
    }
    return this.#count
  }

  #end(id: string, status: string | undefined): void {
    if (status !== 'failed' || this.#counted || this.#ofSubagents.has(id)) return
    this.#counted = true
    this.#count++
  }
}
