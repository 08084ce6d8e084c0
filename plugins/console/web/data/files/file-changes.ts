import { Refusal } from '../../../../../sdk/refusal.js'
import type { WorkspaceChangedEvent } from '../../../../workspace/contract.js'
import { askDaemon } from '../api.js'

/** Called with the paths that changed in the shared tree, or with nothing where more changed than is known. */
export type PathListener = (paths: readonly string[] | undefined) => void

const listeners = new Set<PathListener>()
/** The generation up to which the listeners know everything; absent until the first event. */
let known: number | undefined
let catching: Promise<void> | undefined

/** Listens for changed files until the returned function is called. */
export const onPaths = (listener: PathListener): (() => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

const announce: PathListener = paths => {
  for (const listener of listeners) listener(paths)
}

/** Asks what changed since the last known generation, as after a gap in the events. */
const catchUp = (): Promise<void> =>
  (catching ??= (async () => {
    // A generation from before the beginning is answered too: the daemon watches the tree from the first question on.
    const since = known ?? 0
    try {
      const { paths, generation, reset } = await askDaemon('GET /workspace/changed', { since })
      known = generation
      announce(reset ? undefined : paths)
    } catch (error) {
      // A generation of another run of the daemon is not known to this one.
      if (error instanceof Refusal) known = undefined
      announce(undefined)
    }
  })().finally(() => (catching = undefined)))

/** Takes in an event of the shared tree. */
export const filesChanged = ({ paths, since, generation, reset, conversationId }: WorkspaceChangedEvent): void => {
  if (conversationId !== undefined || (known !== undefined && generation <= known)) return
  if (reset || (known !== undefined && since > known)) {
    known ??= since
    return void catchUp()
  }
  known = generation
  announce(paths)
}

/** After events may have been missed. */
export const filesMissed = (): void => {
  if (listeners.size > 0) void catchUp()
}

/** After a person reaches other files than before: what was read of the tree counts no more. */
export const filesAnew = (): void => announce(undefined)

/** Has the daemon send events of changed files, for pages that show more than the tree, until the answer is called. */
export const followFiles = (): (() => void) => {
  const stop = onPaths(() => {})
  if (known === undefined) void catchUp()
  return stop
}
