import { createHash } from 'node:crypto'
import { refuse } from '../../sdk/index.js'
import type { ActionBody, Approval, ApprovalInput } from './contract.js'

/** A copied file of a post. */
export interface StoredMedia {
  /** Its path when it was filed. */
  path: string
  hash: string
}

/** What the agent is told, until group agent has accepted it. */
export interface OutcomeMessage {
  messageId: string
  run: string
  prompt: string
}

/** An item as it is stored. */
export interface StoredApproval extends Omit<Approval, 'action' | 'via' | 'problem' | 'ownerOnly'> {
  action?: ActionBody
  /** Who may replace it, by person, token or conversation. */
  owner: string
  /** The folder of the copied files. */
  folder?: string
  media?: StoredMedia[]
  /** How often it was tried: part of the idempotency key, which is never used twice. */
  tries: number
  telling?: OutcomeMessage
}

const MOST_ARGS = 64 * 1024
const MOST_TITLE = 120
/** Words in the key of an action that moves money. */
const MONEY = /(?:^|[._-])(?:pay|payment|payout|transfer|purchase|charge|refund|checkout)s?(?=$|[._-])/

/** Whether an item moves money. */
export const movesMoney = ({ action }: Pick<StoredApproval, 'action'>): boolean =>
  action !== undefined && MONEY.test(action.key)

/** What an item is, in one line. */
export const itemTitle = ({ post, action }: Pick<StoredApproval, 'post' | 'action'>): string => {
  const text = post ? `${post.platform}: ${post.title || post.content}` : `${action!.key}: ${action!.summary}`
  return [...text.replaceAll(/\s+/g, ' ')].slice(0, MOST_TITLE).join('')
}

/** What an item publishes or does, as the record names it. */
export const subjectOfItem = ({ post, action }: Pick<StoredApproval, 'post' | 'action'>): string =>
  post ? `${post.platform}.post` : action!.key

/** JSON with the keys of every object in order, so that equal values have equal texts. */
const canonical = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(canonical)
  const entries = Object.entries(value).filter(([, part]) => part !== undefined)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, part]) => [key, canonical(part)]))
}

/** The digest of what a yes is for. */
export const digestOfItem = (
  { kind, post, action, actsAs }: Pick<ApprovalInput, 'kind' | 'post' | 'action' | 'actsAs'>,
  media: readonly StoredMedia[] = [],
): string => {
  const content = { kind, post, action, actsAs, media: media.map(({ hash }) => hash) }
  return createHash('sha256')
    .update(JSON.stringify(canonical(content)))
    .digest('hex')
}

/** Refuses an input whose parts do not fit together. */
export const assertWhole = ({ kind, post, action }: ApprovalInput): void => {
  const wrong = (path: string, expected: string, found: string): never =>
    refuse('invalid', `${path}: expected ${expected}, found ${found}`, { errors: [{ path, expected, value: found }] })
  const [own, other] = kind === 'post' ? ([post, action] as const) : ([action, post] as const)
  if (own === undefined) wrong(kind, `a ${kind}, as kind says`, 'none')
  if (other !== undefined) wrong(kind === 'post' ? 'action' : 'post', `none, because kind is ${kind}`, 'one')
  const bytes = action ? Buffer.byteLength(JSON.stringify(action.args)) : 0
  if (bytes > MOST_ARGS) wrong('action.args', `at most ${MOST_ARGS} bytes as JSON`, `${bytes} bytes`)
}
