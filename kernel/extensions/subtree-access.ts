import type { tags } from 'typia'

/** All paths below a first segment, which one call of a group answers, whatever their method. */
export interface Subtree {
  segment: string & tags.Pattern<'^[a-z0-9][a-z0-9-]*$'>
  /** A call without a route. It gets the request and answers with its head and its pieces. */
  call: string
}
