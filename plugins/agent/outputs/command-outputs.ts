import type { Handlers, Log, Store } from '../../../sdk/index.js'
import type { SentPicture } from '../providers/adapter.js'
import type { OutputCalls } from './contract.js'
import { OutputLedger } from './output-ledger.js'
import { WholeOutputs } from './whole-outputs.js'

/** The whole texts of results that models read in part, and what was left out of outputs of commands. */
export class CommandOutputs {
  readonly whole: WholeOutputs
  readonly ledger: OutputLedger
  readonly #log: Log
  readonly calls: Handlers<OutputCalls> = { 'agent.savings': range => this.ledger.savings(range) }

  constructor(data: string, store: Store, log: Log) {
    this.whole = new WholeOutputs(data)
    this.ledger = new OutputLedger(store, log)
    this.#log = log
  }

  /** Keeps the whole text of a result; returns the path of its file, or undefined if it cannot be kept. */
  async keep(conversation: string, text: string): Promise<string | undefined> {
    return this.whole.keep(conversation, text).catch((error: unknown) => {
      this.#log.warn('the whole text of a result could not be kept', { conversation, error: String(error) })
      return undefined
    })
  }

  /** Keeps a picture as a model is shown it; undefined: it cannot be kept. */
  async picture(conversation: string, name: string, bytes: Buffer): Promise<SentPicture | undefined> {
    return this.whole.picture(conversation, name, bytes).catch((error: unknown) => {
      this.#log.warn('a picture could not be kept', { conversation, error: String(error) })
      return undefined
    })
  }
}
