import { cutAtWord } from '../../sdk/node/push/words.js'
import type { PushMessage, PushMoment } from './contract.js'

/** A notification as a device gets it. */
export interface DeviceNotification {
  readonly title: string
  readonly body: string
  /** A path in the client. */
  readonly url: string
  /** A newer notification with the same tag replaces this one. */
  readonly tag: string
  /** It stays until the person has reacted. */
  readonly requireInteraction?: true
}

const MOST_BODY = 200
const TITLES: { readonly [moment in PushMoment]: string } = {
  finished: 'A turn finished',
  stuck: 'An agent waits for you',
  approval: 'Something waits for approval',
}
const TAGS: { readonly [moment in PushMoment]: string } = {
  finished: 'turn',
  stuck: 'awaiting',
  approval: 'approval',
}

/** The notification of a message; undefined: it is about nothing. */
export const notificationOf = (message: PushMessage): DeviceNotification | undefined => {
  const { moment, conversationId, approvalId, text } = message
  const id = (moment === 'approval' ? approvalId : undefined) ?? conversationId ?? approvalId
  if (id === undefined) return undefined
  const url =
    approvalId === undefined
      ? `/?conversation=${encodeURIComponent(id)}`
      : `/?approval=${encodeURIComponent(approvalId)}`
  return {
    title: TITLES[moment],
    body: cutAtWord(text, MOST_BODY),
    ...{ url, tag: `${TAGS[moment]}-${id}` },
    ...(moment !== 'finished' && { requireInteraction: true as const }),
  }
}

/** What `POST /push/test` sends. */
export const TEST_NOTIFICATION: DeviceNotification = {
  title: 'A test of your sandbox',
  body: 'Notifications reach this device.',
  ...{ url: '/', tag: 'test' },
}
