import { createHash } from 'node:crypto'
import type { StoredNeed } from './stored-need.js'

const OUTCOMES = { given: 'was given', declined: 'will not be given', expired: 'was not given in time' } as const

/** What an agent reads of a settled need. */
export const outcomeOf = ({ title, status, fields, answers = {}, note }: StoredNeed): string => {
  const lines = fields.flatMap(({ key, label, options }) => {
    const answer = answers[key]
    if (answer === undefined) return []
    const chosen = options?.find(({ value }) => value === answer)
    const text = chosen ? `${chosen.label} (${chosen.value})` : typeof answer === 'boolean' ? yesNo(answer) : answer
    return [`${label}: ${text}`]
  })
  if (note) lines.push(status === 'declined' ? `Reason: ${note}` : `Note: ${note}`)
  return [`${title}: ${OUTCOMES[status as keyof typeof OUTCOMES] ?? status}`, ...lines].join('\n')
}

const yesNo = (answer: boolean): string => (answer ? 'yes' : 'no')

/** The message with which a conversation goes on. */
export const messageOf = (needs: readonly StoredNeed[]): string =>
  `What you needed was settled. Go on with the task.\n\n${needs.map(outcomeOf).join('\n\n')}`

/** The id of the message that tells a conversation of settled needs: the last of them names it, so it is used once. */
export const messageIdOf = ({ conversationId, id }: StoredNeed): string => `needs-${conversationId}-${id}`

/** The run of a message: the same whenever the message is sent again. */
export const runOf = (message: string): string => `r-${createHash('sha256').update(message).digest('hex').slice(0, 20)}`
