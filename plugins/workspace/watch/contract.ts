import type { Generation, CopyOf } from '../tree/contract.js'
import type { tags } from 'typia'

/** The changes of a tree between two generations. */
export interface ChangedPaths {
  since: Generation
  generation: Generation
  paths: string[] & tags.MaxItems<2000>
  /** More changed than is known: read the tree again. */
  reset: boolean
}
/** Files or folders changed. */
export interface WorkspaceChangedEvent {
  kind: 'workspaceChanged'
  /** Empty if nothing within the caller's areas changed. */
  paths: string[] & tags.MaxItems<200>
  since: Generation
  generation: Generation
  /** `paths` is incomplete: call GET /workspace/changed. */
  reset?: true
  /** The conversation in whose private copy it happened; absent: in the shared tree. */
  conversationId?: string
}

/** The events about files that other groups can subscribe to. */
export interface FileEvents {
  /** Files of the shared tree changed; comes before clients are notified. */
  'files.changed': { generation: Generation }
  /** Folders of the shared tree, or git folders in them, came or went. */
  'folders.changed': {}
}

/** Changes of the tree. */
export interface ChangeCalls {
  /**
   * List the paths that changed since a generation of the tree, each once.
   *
   * `reset` says to read the tree again: the generation is from before a restart or too long ago, or more than 2,000
   * paths changed.
   *
   * - 400: `since` is greater than the present generation
   * - 404: no such conversation
   * - 409: its private copy was cleaned up
   */
  'GET /workspace/changed'(input: { agent?: CopyOf; since: Generation }): ChangedPaths
}
