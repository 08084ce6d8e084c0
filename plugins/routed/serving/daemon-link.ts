import { linesWithin } from '../../../sdk/node/programs/piped-process.js'
import type {
  DaemonNews,
  LeasedRequest,
  LinkCall,
  LinkInput,
  LinkOutput,
  ProcessNews,
  RoutingTable,
} from '../link/messages.js'
import { ServingFailure } from './failure.js'

const MOST_LINE = 256 * 1024 * 1024

/** The daemon, over the standard streams of this process. */
export class DaemonLink {
  readonly #output: NodeJS.WritableStream
  readonly #asked = new Map<number, { resolve(output: object): void; reject(error: Error): void }>()
  #count = 0
  /** What the daemon listened on when it lent the last credential. */
  listeners: LeasedRequest['listeners'] = []
  table: RoutingTable = { providers: [], grants: [] }

  constructor(output: NodeJS.WritableStream) {
    this.#output = output
  }

  /** Reads what the daemon says; returns when it says nothing more. */
  async follow(input: AsyncIterable<Buffer>): Promise<void> {
    for await (const line of linesWithin(input, MOST_LINE)) this.#hear(JSON.parse(line) as DaemonNews)
  }

  tell(news: ProcessNews): void {
    this.#output.write(`${JSON.stringify(news)}\n`)
  }

  ask<C extends LinkCall>(call: C, input: LinkInput<C>): Promise<LinkOutput<C>> {
    const id = ++this.#count
    const { promise, resolve, reject } = Promise.withResolvers<object>()
    this.#asked.set(id, { resolve, reject })
    this.tell({ news: 'ask', id, call, input })
    return promise as Promise<LinkOutput<C>>
  }

  #hear(news: DaemonNews): void {
    if (news.news === 'table') {
      this.table = news.table
      return
    }
    const asked = this.#asked.get(news.id)
    this.#asked.delete(news.id)
    if (news.news === 'answer') {
      const { listeners } = news.output as Partial<LeasedRequest>
      if (listeners) this.listeners = listeners
      return asked?.resolve(news.output)
    }
    const { status, message, retryAfter } = news.refusal
    const wait = retryAfter === undefined ? {} : { retryAfter: String(Math.ceil(retryAfter)) }
    asked?.reject(new ServingFailure(status, message, wait))
  }
}
