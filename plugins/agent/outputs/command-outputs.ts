import type { Handlers, Log, Store } from '../../../sdk/index.js'
import type { OutputCalls } from './contract.js'
import { OutputLedger } from './output-ledger.js'
import { WholeOutputs } from './whole-outputs.js'

/** The whole outputs of commands that were shortened, and what was left out of them. */
export class CommandOutputs {
  readonly whole: WholeOutputs
  readonly ledger: OutputLedger
  readonly calls: Handlers<OutputCalls> = { 'agent.savings': range => this.ledger.savings(range) }

  constructor(data: string, store: Store, log: Log) {
    this.whole = new WholeOutputs(data)
    this.ledger = new OutputLedger(store, log)
  }
}
