import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { CiReport, ForgeHost } from '../contract.js'

type Header = 'x-hub-signature-256' | 'x-forgejo-signature' | 'x-gitea-signature' | 'x-gitlab-token'

/** Where each forge proves that it knows the secret. */
const PROOFS: { readonly [host in ForgeHost]: readonly Header[] } = {
  github: ['x-hub-signature-256'],
  gitlab: ['x-gitlab-token'],
  forgejo: ['x-forgejo-signature', 'x-gitea-signature', 'x-hub-signature-256'],
  gitea: ['x-gitea-signature', 'x-hub-signature-256'],
}

const hashed = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Compares in a time that depends on neither text. */
const isEqual = (one: string, other: string): boolean => timingSafeEqual(hashed(one), hashed(other))

/** Whether a report proves that its sender knows the secret. Where a signature is sent, it alone decides. */
export const provesSecret = (
  host: ForgeHost,
  secret: string,
  report: CiReport,
  bytes: Buffer,
  bearer: string | undefined,
): boolean => {
  const header = PROOFS[host].find(name => report[name] !== undefined)
  if (header === undefined) return isEqual(report.token ?? bearer ?? '', secret)
  const given = report[header]!
  if (header === 'x-gitlab-token') return isEqual(given, secret)
  const signature = createHmac('sha256', secret).update(bytes).digest('hex')
  return isEqual(given.toLowerCase(), header === 'x-hub-signature-256' ? `sha256=${signature}` : signature)
}
