/** Something to do in an outside system that is connected. */
export interface ConnectionAction {
  /** The connection; left out: the one that the key begins with. */
  capability?: string
  /** `<connection>.<type>`. */
  key: string
  args: { [field: string]: unknown }
}
/** What carries an action out; empty: no connection is meant. */
export interface ActionCarrier {
  capability?: string
  /** The name of the tool, where it is one of an agent's. */
  tool?: string
  /** Why it cannot be carried out, as a sentence. */
  problem?: string
}
/** An action that a person approved, with the values of its secrets: never shown, never logged. */
export interface ApprovedAction extends ConnectionAction {
  capability: string
  /** The same for each try of one attempt. */
  idempotencyKey: string
}
/** How an attempt ended; `unknown`: it may have gone out. */
export interface ActionEnd {
  outcome: 'done' | 'failed' | 'unknown'
  error?: string
  url?: string
  result?: string
}

/** What connections do after a person's yes. */
export interface ActionCalls {
  /** Says which connection would carry an action out; with `asks` the outside system may be asked, never for a list. */
  'capabilities.checkAction'(input: ConnectionAction & { asks?: boolean }): ActionCarrier
  /** Carries an action out once. What it throws was not sent. */
  'capabilities.carryOut'(input: ApprovedAction): ActionEnd
}
