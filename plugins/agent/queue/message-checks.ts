import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { covers, Refusal, refuse } from '../../../sdk/index.js'
import type { AccessView } from '../../../sdk/node/access/access-view.js'
import { inside } from '../../../sdk/node/files/paths.js'
import { wallKind } from '../../../sdk/node/wall/wall.js'
import type { CopyStart, TurnInput } from '../contract.js'
import { pinsOf } from '../conversations/pins.js'
import type { Copies } from '../copies/copies.js'
import { realPaths, visiblePaths } from '../turn/message-paths.js'

/** The checks of a message that read the disk. */
export interface MessageChecks {
  /** Refuses attachments outside the workspace, or that are no file visible to the caller. */
  attachments(paths: readonly string[], seen: AccessView): Promise<void>
  /** The paths that exist for the caller. */
  mentions(paths: readonly string[], seen: AccessView): Promise<string[]>
  /** Refuses a start folder that is outside the workspace or not a folder. */
  startIn(path: string): Promise<void>
  /** Refuses if the sandbox cannot land work. */
  landing(): Promise<void>
  /** Refuses if no private copy can be made; returns the commits to pin it to. */
  isolation(input: Pick<TurnInput, 'worktreeBase'>, seen: AccessView): Promise<CopyStart[]>
  /** Refuses if turns cannot be limited to folders. */
  masking(): Promise<void>
}

/** Refuses if no wall can limit a turn to folders. */
export const assertMasking = async (): Promise<void> => {
  if ((await wallKind()) !== 'none') return
  refuse(
    'conflict',
    'this machine has no wall that keeps a turn to your areas: install bubblewrap (apt-get install bubblewrap), '
      + 'or have a maintainer start it',
  )
}

/** The checks of a message before anything is stored. */
export const messageChecks = (
  workspace: string,
  copies: Pick<Copies, 'possible' | 'repositories'>,
  landing: MessageChecks['landing'],
): MessageChecks => ({
  landing,
  masking: assertMasking,
  attachments: async (paths, seen) => {
    for (const path of paths) {
      const file = await located(workspace, path, 'attachments', seen)
      if (!(await stat(file)).isFile())
        refuse('unprocessable', `attachments: expected a file at ${path}, found a folder`)
    }
  },
  mentions: async (paths, seen) => realPaths(workspace, await visiblePaths(paths, seen)),
  startIn: async path => {
    const folder = await located(workspace, path, 'startIn')
    if (!(await stat(folder)).isDirectory())
      refuse('unprocessable', `startIn: expected a folder at ${path}, found a file`)
  },
  isolation: async ({ worktreeBase = [] }, { reach }) => {
    if (!(await copies.possible()))
      refuse(
        'unprocessable',
        'isolated: a private copy begins from a commit, and no git repository of the workspace has one: make it '
          + '(git commit --allow-empty -m first), or leave isolated out',
      )
    return worktreeBase.length
      ? pinsOf(
          worktreeBase,
          (await copies.repositories()).filter(({ repo }) => covers(reach, repo) !== 'none'),
        )
      : []
  },
})

/** The real path of a message's path: one outside the workspace is invalid, a missing one unprocessable. */
const located = async (workspace: string, path: string, field: string, seen?: AccessView): Promise<string> => {
  if (seen?.reach && !(await seen.sees(path)))
    refuse('unprocessable', `${field}: nothing that the turn reaches is named ${path}`)
  try {
    return await inside(workspace, path)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const expected = 'a path inside the workspace'
    if (error.reason === 'invalid')
      refuse('invalid', `${field}: ${error.message}`, { errors: [{ path: field, expected }] })
    const escapes = await stat(join(workspace, path)).then(
      () => true,
      () => false,
    )
    if (escapes)
      refuse('invalid', `${field}: ${path} leads outside the workspace`, { errors: [{ path: field, expected }] })
    return refuse('unprocessable', `${field}: nothing in the workspace is named ${path}`)
  }
}
