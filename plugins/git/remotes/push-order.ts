/** One ref to push. */
export interface PushOrder {
  readonly local: string
  /** The object id to push; empty: the ref is deleted there. */
  readonly id: string
  readonly remote: string
  /** The last known commit of the remote ref. */
  readonly expected?: string
  /** Commits there may be lost if the remote ref is still as last seen. */
  readonly lease?: boolean
}
