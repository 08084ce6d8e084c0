/** One ref that goes to a remote. */
export interface PushOrder {
  readonly local: string
  /** The object it goes as; empty: the ref is deleted there. */
  readonly id: string
  readonly remote: string
  /** Where the remote was last seen. */
  readonly expected?: string
  /** It may lose commits there, if it is where it was last seen. */
  readonly lease?: boolean
}
