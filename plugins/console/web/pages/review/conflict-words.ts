import type { ConflictFile } from '../../../../agents/contract.js'
import { visibleName } from '../../ui/format.js'

const REASONS: { readonly [reason in ConflictFile['reason']]: string } = {
  workspace: 'Uncommitted changes of the workspace are in the way.',
  diverged: 'The main line changed the same lines.',
  binary: 'Git cannot merge this file.',
}

const STANDS: { readonly [what in NonNullable<ConflictFile['inTheWay']>['what']]: string } = {
  file: 'a file',
  folder: 'a folder',
  link: 'a link',
  repository: 'another repository',
  closed: 'a folder that cannot be opened',
  special: 'something that is no file',
  outside: 'a link',
}

/** Why a file does not land, as a sentence. */
export const conflictWords = ({ reason, inTheWay }: Pick<ConflictFile, 'reason' | 'inTheWay'>): string =>
  inTheWay?.what === 'outside'
    ? 'This link leads out of the workspace. Have it lead inside, or remove it.'
    : inTheWay
      ? `The workspace has ${STANDS[inTheWay.what] ?? inTheWay.what} at ${visibleName(inTheWay.path)}.`
      : (REASONS[reason] ?? reason)
