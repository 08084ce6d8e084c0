import { generateKeyPairSync, randomBytes } from 'node:crypto'

/** Both halves of a key pair, as OpenSSH writes them into files. */
export interface SshKeyPair {
  readonly privateKey: string
  readonly publicKey: string
}

const KIND = 'ssh-ed25519'
const BLOCK = 8
const LINE = /.{1,70}/g

/** A new ed25519 key pair (OpenSSH, PROTOCOL.key; RFC 8709). */
export const sshKeyPair = (comment: string): SshKeyPair => {
  const { privateKey } = generateKeyPairSync('ed25519')
  const { d, x } = privateKey.export({ format: 'jwk' })
  const [secret, known] = [Buffer.from(d!, 'base64url'), Buffer.from(x!, 'base64url')]
  const shown = Buffer.concat([framed(KIND), framed(known)])
  const check = randomBytes(4)
  const inner = Buffer.concat([check, check, shown, framed(Buffer.concat([secret, known])), framed(comment)])
  const padding = Buffer.from(Array.from({ length: (BLOCK - (inner.length % BLOCK)) % BLOCK }, (_, at) => at + 1))
  const none = framed('none')
  const file = Buffer.concat([
    Buffer.from('openssh-key-v1\0'),
    none,
    none,
    framed(''),
    number(1),
    framed(shown),
    framed(Buffer.concat([inner, padding])),
  ])
  const body = file.toString('base64').match(LINE)!.join('\n')
  return {
    privateKey: `-----BEGIN OPENSSH PRIVATE KEY-----\n${body}\n-----END OPENSSH PRIVATE KEY-----\n`,
    publicKey: [KIND, shown.toString('base64'), comment].filter(Boolean).join(' '),
  }
}

const number = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** Bytes with their length before them (RFC 4251, section 5). */
const framed = (content: string | Buffer): Buffer => {
  const bytes = Buffer.from(content)
  return Buffer.concat([number(bytes.length), bytes])
}
