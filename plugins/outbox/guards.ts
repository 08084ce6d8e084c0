import type { BlockReason } from './contract.js'

/** The limits of the outbox: bytes of a file and of all, files, and folders in folders. */
export const MOST = { fileBytes: 512 * 1024 ** 2, bytes: 4 * 1024 ** 3, files: 20_000, levels: 12 } as const

/** Why a file is not served, in words. */
export const REASONS: { readonly [reason in BlockReason]: string } = {
  hidden: 'hidden files and names that no address can have are not served',
  'credential-name': 'a file of this name is a credential',
  'credential-content': 'it contains a stored secret, a private key or an access key',
  'too-large': `it has more than ${MOST.fileBytes} bytes`,
  link: 'links, pipes and devices are not served',
  expired: 'its time is over',
  unlisted: 'it was not published, or was changed since',
}

const CREDENTIALS = new RegExp(
  '^(?:id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|credentials(?:\\.(?:json|db|ya?ml))?|_?netrc|service[-_]account.*\\.json'
    + '|htpasswd|wallet\\.dat|.*\\.(?:pem|key|p8|p12|pfx|kdbx?|jks|keystore|gpg|pgp|asc|ppk|ovpn))$',
  'i',
)
/** What editors and people put behind a name that they keep a copy under, and what some disks drop. */
const OF_COPIES = /(?:\.(?:bak|backup|old|orig|save|copy|tmp|sw[a-p])|[~. ])+$/i
const UNADDRESSABLE = /[\\\x00-\x1f\x7f]/

/** Why a name is never published; undefined: it may be. */
export const nameProblem = (name: string): BlockReason | undefined => {
  if (name.startsWith('.') || UNADDRESSABLE.test(name) || !name.isWellFormed()) return 'hidden'
  return CREDENTIALS.test(name.replace(OF_COPIES, '')) ? 'credential-name' : undefined
}
