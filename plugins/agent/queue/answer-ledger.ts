import type { LedgerRow } from './lines.js'

const ROWS = 20_000
const KEPT_MS = 30 * 24 * 3_600_000
/** Rows in one block of text. */
const BLOCK = 1_000
const DELIVERIES = ['started', 'said', 'queued'] as const
const PLAIN = /^[\w-]+$/

/** Rows as text, which costs a start much less than as many objects; `rest` does not fit into it. */
export interface LedgerText {
  readonly blocks: readonly string[]
  readonly rest: readonly LedgerRow[]
}

/** The first answers to messages. Blocks of text are read when the first message is looked up. */
export class AnswerLedger {
  #unread: string[] = []
  #rows = new Map<string, LedgerRow>()

  /** Adds a block of rows that are older than all others but those of the blocks before it. */
  load(block: string): void {
    this.#unread.push(block)
  }

  get(messageId: string): LedgerRow | undefined {
    return this.#read().get(messageId)
  }

  set(row: LedgerRow): void {
    this.#rows.set(row.messageId, row)
    if (this.#rows.size > ROWS) this.#forget()
  }

  /** The rows whose messages fit, for `load`. */
  text(fits: (messageId: string) => boolean): LedgerText {
    const all = [...this.#read().values()].filter(({ messageId }) => fits(messageId))
    const plain = all.filter(({ messageId, run }) => PLAIN.test(messageId) && PLAIN.test(run))
    const blocks = Array.from({ length: Math.ceil(plain.length / BLOCK) }, (_, block) =>
      plain
        .slice(block * BLOCK, (block + 1) * BLOCK)
        .map(wordsOf)
        .join(' '),
    )
    return { blocks, rest: all.filter(({ messageId, run }) => !PLAIN.test(messageId) || !PLAIN.test(run)) }
  }

  #read(): Map<string, LedgerRow> {
    if (this.#unread.length > 0) {
      const older = this.#unread.flatMap(rowsIn).map(row => [row.messageId, row] as const)
      this.#unread = []
      this.#rows = new Map([...older, ...this.#rows])
      this.#forget()
    }
    return this.#rows
  }

  #forget(): void {
    const oldest = Date.now() - KEPT_MS
    for (const [messageId, { at }] of this.#rows) {
      if (this.#rows.size <= ROWS || at >= oldest) return
      this.#rows.delete(messageId)
    }
  }
}

/** The words of one row; every row has as many. */
const wordsOf = ({ messageId, run, conversationId, delivery, at, withdrawn }: LedgerRow): string =>
  `${messageId} ${run} ${conversationId} ${DELIVERIES.indexOf(delivery)} ${at} ${withdrawn ? 1 : 0}`

const rowsIn = (block: string): LedgerRow[] => {
  const words = block.split(' ')
  return Array.from({ length: words.length / 6 }, (_, row) => {
    const [messageId = '', run = '', conversationId = '', delivery, at, withdrawn] = words.slice(row * 6, row * 6 + 6)
    return {
      run,
      conversationId,
      messageId,
      delivery: DELIVERIES[Number(delivery)]!,
      at: Number(at),
      ...(withdrawn === '1' && { withdrawn: true as const }),
    }
  })
}
