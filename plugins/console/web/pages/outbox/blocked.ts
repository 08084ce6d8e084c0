import type { BlockReason } from '../../../../outbox/contract.js'

/** Why a file is not public, in few words. */
export const BLOCKED: { readonly [reason in BlockReason]: string } = {
  hidden: 'hidden file',
  'credential-name': 'its name is that of a credential',
  'credential-content': 'contains a secret',
  'too-large': 'too large',
  link: 'a link',
  expired: 'its time is over',
  unlisted: 'was not published, or was changed since',
}
