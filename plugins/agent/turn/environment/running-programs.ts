interface UnderWay {
  readonly pid: number
  readonly conversationId: string
}

/** The programs that tools of turns are running now. */
export class ProgramsUnderWay {
  readonly #running = new Map<number, UnderWay>()

  get all(): UnderWay[] {
    return [...this.#running.values()]
  }

  /** Counts a program of a conversation until it is over. */
  begun(conversationId: string, pid: number, over: Promise<unknown>): void {
    const one: UnderWay = { pid, conversationId }
    this.#running.set(pid, one)
    // Its pid may belong to another program by then.
    const gone = () => void (this.#running.get(pid) === one && this.#running.delete(pid))
    over.then(gone, gone)
  }
}
