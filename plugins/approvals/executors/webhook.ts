import { randomBytes } from 'node:crypto'
import { Refusal, refuse, type Host } from '../../../sdk/index.js'
import { allowedOf } from '../../../sdk/node/network/allow.js'
import { SENTENCES } from '../../../sdk/node/network/failure-words.js'
import { askOutside, webAddress, type OutboundReply } from '../../../sdk/node/network/outbound.js'
import { connectChecked, type NetworkReach } from '../../../sdk/node/network/policy.js'
import { valueMasker } from '../../../sdk/node/access/value-masker.js'
import type { MediaCopies, SentMedia } from '../media.js'
import type { StoredApproval } from '../stored-approval.js'
import { UnknownOutcome, type CarriedOut, type Executor, type Missing } from './executor.js'
import { textWithSecrets } from './with-secrets.js'

type WebhookHost = Pick<Host, 'call' | 'serves'>

const TIMEOUT_MS = 60_000
const MOST_ANSWER = 64 * 1024
const MOST_RESULT = 3_900
const REFERENCE = /\{\{secret:[^{}]{1,200}\}\}/g
/** Failures at which nothing was sent. */
const UNSENT = new Set(
  Object.keys(SENTENCES).filter(code => !['ECONNRESET', 'ETIMEDOUT', 'HPE_HEADER_OVERFLOW'].includes(code)),
)

/** Sends a post as one HTTP POST to its target. */
export const webhook = (host: WebhookHost, copies: MediaCopies, item: StoredApproval): Executor | Missing => {
  const { target } = item.post!
  if (target === undefined || target === '') return { problem: 'a webhook needs the address it calls as its target' }
  // An address may be secret as a whole, so its host is not always known before.
  const shown = URL.parse(target.replaceAll(REFERENCE, 'x'))
  if (!shown && !REFERENCE.test(target)) return { problem: `${JSON.stringify(target.slice(0, 200))} is no web address` }
  const { content } = item.post!
  return {
    lane: `webhook ${shown?.origin ?? target}`,
    subjects: [
      { kind: 'action', provider: 'webhook', type: 'post', text: content.slice(0, 20_000).toWellFormed() },
      ...(shown ? [{ kind: 'host' as const, text: shown.hostname }] : []),
    ],
    carryOut: (key, signal) => sent(host, copies, item, key, signal),
  }
}

const sent = async (
  host: WebhookHost,
  copies: MediaCopies,
  item: StoredApproval,
  key: string,
  signal: AbortSignal,
): Promise<CarriedOut> => {
  const { target = '', title = '', content } = item.post!
  const filled = await Promise.all([target, title, content].map(text => textWithSecrets(host, item, text)))
  const { type, body } = bodyOf(filled[1]!, filled[2]!, await copies.read(item))
  const masker = await valueMasker(host)
  let answer: OutboundReply
  try {
    answer = await askOutside({
      url: webAddress(filled[0]!).href,
      method: 'POST',
      headers: { 'content-type': type, 'idempotency-key': key },
      body,
      reach: await reachOf(host, signal),
      signal,
      timeoutMs: TIMEOUT_MS,
      redirects: 0,
      maxBytes: MOST_ANSWER,
    })
  } catch (error) {
    signal.throwIfAborted()
    const { reason, message, cause } = Refusal.from(error)
    const { code = '' } = (cause ?? {}) as NodeJS.ErrnoException
    const words = masker.mask(message)
    if (reason === 'dependency' && !UNSENT.has(code)) throw new UnknownOutcome(words)
    return refuse(reason, words)
  }
  const { status, statusText, headers } = answer
  const text = masker.mask(answer.body.toString('utf8').toWellFormed())
  if (status < 200 || status >= 300)
    refuse('dependency', `it answered ${status} ${statusText}: ${text.slice(0, 300)}`.trim().replace(/:$/, ''))
  const url = headers.location === undefined ? undefined : URL.parse(headers.location, answer.url)?.href
  return {
    result: `${status} ${statusText}\n${[...text].slice(0, MOST_RESULT).join('')}`.trim(),
    ...(url !== undefined && { url: masker.mask(url) }),
  }
}

/** The policy of conversations: public addresses, and what a maintainer allowed of the machine's own network. */
const reachOf = async (host: WebhookHost, signal: AbortSignal): Promise<NetworkReach> => {
  const { listeners } = await host.call('kernel.listeners')
  const settings = (await host.serves('settings.get')) ? await host.call('settings.get') : undefined
  const { network, networkAllow = [], networkOnly = false } = settings ?? {}
  if (network === 'shared') return { near: true, listeners }
  const rules = { allow: allowedOf(networkAllow), only: networkOnly, listeners }
  const dial = (port: number) => connectChecked({ host: '127.0.0.1', port }, rules, signal)
  return { near: true, listeners, own: { rules, dial, refused: () => {} } }
}

/** The content alone as it was shown; with a title or files a form of `content`, `title` and `media`. */
const bodyOf = (title: string, content: string, media: readonly SentMedia[]): { type: string; body: Buffer } => {
  if (title === '' && media.length === 0) return { type: typeOf(content), body: Buffer.from(content) }
  const boundary = `sandbox-${randomBytes(18).toString('hex')}`
  const part = (name: string, bytes: Buffer, file?: string): Buffer[] => {
    const named = file === undefined ? '' : `; filename="${file.replaceAll(/["\r\n]/g, encodeURIComponent)}"`
    const type = file === undefined ? '' : '\r\ncontent-type: application/octet-stream'
    const head = `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${named}${type}\r\n\r\n`
    return [Buffer.from(head), bytes, Buffer.from('\r\n')]
  }
  const parts = [
    ...(title === '' ? [] : part('title', Buffer.from(title))),
    ...part('content', Buffer.from(content)),
    ...media.flatMap(({ name, bytes }) => part('media', bytes, name)),
    Buffer.from(`--${boundary}--\r\n`),
  ]
  return { type: `multipart/form-data; boundary=${boundary}`, body: Buffer.concat(parts) }
}

const typeOf = (content: string): string => {
  try {
    JSON.parse(content)
    return 'application/json'
  } catch {
    return 'text/plain; charset=utf-8'
  }
}
